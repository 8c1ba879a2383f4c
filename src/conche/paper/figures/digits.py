"""Odd/even digits: test error of every task after each pass over all of them (Section IV-F)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from ...common.arrays import Array, even_sizes, here, space
from ...common.device import Device, find_device
from ...tasks import Task, embedded_digits, odd_even_mnist
from ..simulation.repeats import LOSSES, repeated
from .spec import Spec
from .work import Row, Settings, Unit, Work

N_TASKS = 5
NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}  # by their folders
DRAWERS = 8  # threads that draw trials; more wait for each other's memory
EMBEDDED_SCALE = 0.7  # of the cosine features: 64 pixels, not 784


def digits(spec: Spec, seed: int, folder: Path | None, device: str | None = None) -> Work:
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
        cost += 1e-3 * panel["passes"] * N_TASKS
        batch = _batch(panel, find_device(device))
        for first in range(0, spec.trials, batch):
            trials = range(first, min(first + batch, spec.trials))
            run = partial(digit_values, panel, folder, seed, trials, device)
            units.append(Unit(f"{number}-{first}", index, trials, len(trials) * cost, run))
    note = "no MNIST files given: scikit-learn's embedded 8 x 8 digits (UCI optdigits)"
    if folder:
        note = f"data: {NAMES.get(Path(folder).name.lower(), Path(folder).name)}"
    return Work(rows, units, note)


def _batch(panel: Settings, device: Device) -> int:
    """Trials that are computed together: one here, as many as there is room for on a GPU."""
    if device.name == "cpu":
        return 1
    return max(1, int(device.room() / (N_TASKS * panel["n_samples"] * panel["n_features"])))


def digit_values(
    panel: Settings, folder: Path | None, seed: int, trials: range, device: str | None = None
) -> Array:
    """trials x (tasks passes): test error rates."""
    where = find_device(device)
    # NumPy draws without holding Python's lock: the trials of a batch are drawn side by side
    with ThreadPoolExecutor(min(DRAWERS, len(trials))) as pool:
        drawn = list(pool.map(partial(_tasks, panel, folder, seed), trials))
    xp, put = where.xp, _Once(where)
    A = xp.stack([xp.stack([task.X.read_on(put) for task in train]) for train, _ in drawn])
    y = where.put(np.array([[task.y for task in train] for train, _ in drawn]))
    sizes = even_sizes(panel["n_features"], panel["n_nodes"])
    passes, rounds = panel["passes"], panel["n_rounds"]
    w = repeated(A, y, sizes, LOSSES[panel["loss"]], passes, rounds)
    return np.stack([_rates(w[i, ...], test, put) for i, (_, test) in enumerate(drawn)])


def _rates(w: Array, test: list[Task], put: _Once) -> Array:
    """Of every task, after every pass."""
    rates, xp = [], space(w)
    for task in test:
        wrong = (task.X.read_on(put) @ w.T > 0) != (put(task.y)[:, None] > 0)
        rates.append(here(xp.mean(xp.astype(wrong, w.dtype), axis=0)))
    return np.concatenate(rates)


class _Once:
    """Puts arrays on a device; the last few, such as a trial's directions, only once."""

    def __init__(self, device: Device, kept: int = 4):
        self.device, self.kept = device, kept
        self.known: dict[int, tuple[Array, Array]] = {}

    def __call__(self, array: Array) -> Array:
        if id(array) not in self.known:
            while len(self.known) >= self.kept:
                del self.known[next(iter(self.known))]
            self.known[id(array)] = array, self.device.put(array)
        own = self.known.pop(id(array))
        self.known[id(array)] = own
        return own[1]


def _tasks(
    panel: Settings, folder: Path | None, seed: int, trial: int
) -> tuple[list[Task], list[Task]]:
    """A trial's own tasks: (train, test)."""
    own = int(np.random.default_rng([seed, trial]).integers(2**31))
    p, n, n_test = panel["n_features"], panel["n_samples"], panel["n_test"]
    if folder is not None:
        return odd_even_mnist(folder, p, n, n_test, seed=own, lazy=True)
    train, test = embedded_digits(p, EMBEDDED_SCALE, seed=own, lazy=True)
    return [_first(task, n) for task in train], [_first(task, n_test) for task in test]


def _first(task: Task, n: int) -> Task:
    return Task(task.X.first(n), task.y[:n], name=task.name)
