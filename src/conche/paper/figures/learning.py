"""Learning curves: the error after every round, the tasks repeated (the paper's Section IV-C)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...common.arrays import Array
from ...common.device import find_device
from ..simulation.model import Model
from ..simulation.rows import learning_curves
from ..simulation.simulate import batched
from .entries import SETTINGS
from .spec import Spec
from .sweep import heavy, label, model_of, predicted_curve
from .work import Row, Settings, Unit, Work


class Curve(NamedTuple):
    """What is simulated once, and where it is shown: which error, in which rows."""

    settings: Settings
    places: list[tuple[str, range]]


def learning(spec: Spec, seed: int, device: str | None = None) -> Work:
    """The work of a figure that shows the error after every round.

    Round i of the t-th task stands at x = t - 1 + i / n_rounds.
    """
    rows: list[Row] = []
    curves: dict[str, Curve] = {}
    for panel in spec.panels:
        fixed = {name: panel[name] for name in (*SETTINGS, "passes")}
        for values in product(*(panel[name] for name in spec.curves)):
            settings = fixed | dict(zip(spec.curves, values, strict=True))
            start = len(rows)
            rows += _curve(panel, settings, label(spec.curves, values))
            # panels that differ only in the error they show share their trials
            same = curves.setdefault(repr(sorted(settings.items())), Curve(settings, []))
            same.places.append((panel["error"], range(start, len(rows))))
    units: list[Unit] = []
    for number, group in enumerate(_by_shape(list(curves.values()))):
        units += _units(number, group, spec.trials, seed, device)
    return Work(rows, units)


def _units(
    number: int, group: list[Curve], trials: int, seed: int, device: str | None
) -> Iterator[Unit]:
    """The work for curves of one shape."""
    models = [model_of(curve.settings, curve.settings["n_tasks"]) for curve in group]
    first, passes = models[0], group[0].settings["passes"]
    errors = [[error for error, _ in curve.places] for curve in group]
    index = tuple(i for curve in group for _, rows in curve.places for i in rows)
    p, T, rounds = first.n_features, first.n_tasks, first.n_rounds
    each = 1e-9 * len(models) * passes * T * rounds * T * p * min(first.n_samples[0], p) / 16
    for batch in batched(first, trials, len(models) * rounds, find_device(device)):
        run = partial(curve_values, models, passes, errors, seed, batch, device)
        yield Unit(f"{number}-{batch.start}", index, batch, len(batch) * each, run)


def _curve(panel: Settings, settings: Settings, name: str) -> list[Row]:
    """One curve's rows, with theory at the end of every task of the first pass."""
    T, rounds, passes = settings["n_tasks"], settings["n_rounds"], settings["passes"]
    theory = predicted_curve(settings) if panel["error"] == "generalization" else None
    wild, out = heavy(settings), []
    for step, i in product(range(passes * T), range(1, rounds + 1)):
        known = theory is not None and step < T and i == rounds and np.isfinite(theory[step])
        expected = float(theory[step]) if known and theory is not None else None
        x = step + i / rounds
        out.append(Row(panel["panel"], x, name, expected, wild))
    return out


def _by_shape(curves: list[Curve]) -> list[list[Curve]]:
    """Curves that one draw can serve."""
    names = ("n_samples", "n_features", "correlation", "n_tasks", "passes")
    groups: dict[tuple[Any, ...], list[Curve]] = {}
    for curve in curves:
        groups.setdefault(tuple(curve.settings[name] for name in names), []).append(curve)
    return list(groups.values())


def curve_values(
    models: list[Model],
    passes: int,
    errors: list[list[str]],
    seed: int,
    batch: range,
    device: str | None,
) -> Array:
    """trials x rows: of every model the errors asked for, after every round."""
    where = find_device(device)
    G, F = learning_curves(models, passes, where.draws(seed, batch), where)
    by_error = {"generalization": G, "training": F}
    shown = [by_error[error][i] for i, asked in enumerate(errors) for error in asked]
    return np.concatenate(shown, axis=1)
