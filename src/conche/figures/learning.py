"""Learning curves: the error after every round, the tasks repeated (the paper's Section IV-C)."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..simulation.model import Array, Model, trial_generator
from ..simulation.rows import learning_curves
from ..simulation.simulate import batched
from .spec import SETTINGS, Spec
from .sweep import heavy, label, model_of, predicted_curve
from .work import Row, Settings, Unit, Work


def learning(spec: Spec, seed: int) -> Work:
    """Round i of the t-th task stands at x = t - 1 + i / n_rounds."""
    rows: list[Row] = []
    units: list[Unit] = []
    curves: dict[str, tuple[Settings, list[tuple[str, int, int]]]] = {}
    for panel in spec.panels:
        fixed = {name: panel[name] for name in (*SETTINGS, "passes")}
        for values in product(*(panel[name] for name in spec.curves)):
            settings = fixed | dict(zip(spec.curves, values, strict=True))
            start = len(rows)
            rows += _curve(panel, settings, label(spec.curves, values))
            # panels that differ only in the error they show share their trials
            places = curves.setdefault(repr(sorted(settings.items())), (settings, []))[1]
            places.append((panel["error"], start, len(rows)))
    for number, group in enumerate(_by_shape(list(curves.values()))):
        models = [model_of(settings, settings["n_tasks"]) for settings, _ in group]
        passes = group[0][0]["passes"]
        shown = [[error for error, _, _ in places] for _, places in group]
        index = [i for _, places in group for _, a, b in places for i in range(a, b)]
        steps = passes * models[0].n_tasks * models[0].n_rounds
        for batch in batched(models[0], spec.trials, len(models) * models[0].n_rounds):
            units.append(
                Unit(
                    f"{number}-{batch.start}",
                    tuple(index),
                    batch,
                    1e-9 * len(batch) * len(models) * steps * models[0].n_tasks
                    * models[0].n_features * min(models[0].n_samples[0], models[0].n_features) / 16,
                    partial(curve_values, models, passes, shown, seed, batch),
                )
            )  # fmt: skip
    return Work(rows, units)


def _curve(panel: Settings, settings: Settings, name: str) -> list[Row]:
    T, rounds, passes = settings["n_tasks"], settings["n_rounds"], settings["passes"]
    theory = predicted_curve(settings) if panel["error"] == "generalization" else None
    out = []
    for step, i in product(range(passes * T), range(1, rounds + 1)):
        known = theory is not None and step < T and i == rounds and np.isfinite(theory[step])
        expected = float(theory[step]) if known and theory is not None else None
        x = step + i / rounds
        out.append(Row(panel["panel"], x, name, expected, heavy(settings)))
    return out


def _by_shape(curves: list[Any]) -> list[list[Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for settings, places in curves:
        names = ("n_samples", "n_features", "correlation", "n_tasks", "passes")
        key = tuple(settings[name] for name in names)
        groups.setdefault(key, []).append((settings, places))
    return list(groups.values())


def curve_values(
    models: list[Model], passes: int, shown: list[list[str]], seed: int, batch: range
) -> Array:
    G, F = learning_curves(models, passes, [trial_generator(seed, trial) for trial in batch])
    by_error = {"generalization": G, "training": F}
    return np.concatenate(
        [by_error[error][i] for i, errors in enumerate(shown) for error in errors], axis=1
    )
