"""Odd/even digits: test error of every task after each pass over all of them (Section IV-F)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ...common.arrays import Array
from ...estimators import CoCoAClassifier
from ...tasks import Task, embedded_digits, odd_even_mnist
from .spec import Spec
from .work import Row, Settings, Unit, Work

N_TASKS = 5
NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}  # by their folders
EMBEDDED_SCALE = 0.7  # of the cosine features: 64 pixels, not 784


def digits(spec: Spec, seed: int, folder: Path | None) -> Work:
    """With MNIST's files in ``folder``, or, without, on the digits that scikit-learn brings."""
    rows: list[Row] = []
    units: list[Unit] = []
    for number, panel in enumerate(spec.panels):
        start = len(rows)
        for task in range(N_TASKS):
            name = f"task {task}: {2 * task}/{2 * task + 1}"
            rows += [Row(panel["panel"], i + 1.0, name) for i in range(panel["passes"])]
        index = tuple(range(start, len(rows)))
        cost = 5e-10 * panel["n_features"] * panel["n_test"] * (panel["passes"] + 784)
        cost += 3e-3 * panel["passes"] * N_TASKS
        for trial in range(spec.trials):
            run = partial(digit_values, panel, folder, seed, trial)
            units.append(Unit(f"{number}-{trial}", index, range(trial, trial + 1), cost, run))
    note = "no MNIST files given: scikit-learn's embedded 8 x 8 digits (UCI optdigits)"
    if folder:
        note = f"data: {NAMES.get(Path(folder).name.lower(), Path(folder).name)}"
    return Work(rows, units, note)


def digit_values(panel: Settings, folder: Path | None, seed: int, trial: int) -> Array:
    """1 x (tasks passes): test error rates."""
    train, test = _tasks(panel, folder, seed, trial)
    model = CoCoAClassifier(
        n_nodes=panel["n_nodes"], n_rounds=panel["n_rounds"], loss=panel["loss"]
    )
    passes = []
    for _ in range(panel["passes"]):
        for task in train:
            model.partial_fit(task.X, task.y, classes=[-1.0, 1.0])
        passes.append(np.ravel(model.coef_))
    coefs = np.stack(passes, axis=1)
    rates = [np.mean((task.X @ coefs > 0) != (task.y[:, None] > 0), axis=0) for task in test]
    return np.concatenate(rates)[None]


def _tasks(
    panel: Settings, folder: Path | None, seed: int, trial: int
) -> tuple[list[Task], list[Task]]:
    """A trial's own tasks: (train, test)."""
    own = int(np.random.default_rng([seed, trial]).integers(2**31))
    p, n, n_test = panel["n_features"], panel["n_samples"], panel["n_test"]
    if folder is not None:
        return odd_even_mnist(folder, p, n, n_test, seed=own)
    train, test = embedded_digits(p, EMBEDDED_SCALE, seed=own)
    return [_first(task, n) for task in train], [_first(task, n_test) for task in test]


def _first(task: Task, n: int) -> Task:
    return Task(task.X[:n], task.y[:n], name=task.name)
