"""Errors over a grid of settings: one draw serves all settings of the same shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...common.arrays import Array, even_sizes
from ...common.device import find_device
from ..simulation import span
from ..simulation.model import Model, make_model
from ..simulation.rows import by_rows, offline_by_rows
from ..simulation.simulate import batched
from ..theory import Similarity, generalization_error, offline_error
from .entries import SETTINGS
from .spec import Spec
from .work import Row, Settings, Unit, Work

Wanted = list[tuple[int, int]]  # of every point: which model, and after how many tasks


class Point(NamedTuple):
    """A row of the table and what it simulates."""

    row: int
    settings: Settings
    offline: bool


def sweep(spec: Spec, seed: int, device: str | None = None) -> Work:
    """The work of a figure that shows the error after the last task over a grid of settings."""
    rows: list[Row] = []
    points: list[Point] = []
    for panel in spec.panels:
        for settings, x, curve, offline in _grid(spec, panel):
            points.append(Point(len(rows), settings, offline))
            theory = offline_predicted(settings) if offline else predicted(settings)
            rows.append(Row(panel["panel"], x, curve, theory, heavy(settings, offline)))
    units: list[Unit] = []
    for number, group in enumerate(_by_shape(points)):
        units += _units(number, group, spec.trials, seed, device)
    return Work(rows, units)


def _grid(spec: Spec, panel: Settings) -> Iterator[tuple[Settings, float, str, bool]]:
    """Every point's settings, x and curve, and whether it is the offline solution's."""
    names = spec.curves
    fixed = {name: panel[name] for name in SETTINGS}
    for values in product(*(panel[name] for name in names)):
        chosen = fixed | dict(zip(names, values, strict=True))
        for x in panel[spec.x]:
            yield chosen | {spec.x: x}, float(x), label(names, values), False
    if not spec.offline:
        return
    ignored = ("n_nodes", "n_rounds")  # the offline solution has neither
    kept = [name for name in names if name not in ignored]
    for values in product(*(panel[name] for name in kept)):
        any_of = {name: panel[name][0] for name in names if name in ignored}
        chosen = fixed | any_of | dict(zip(kept, values, strict=True))
        for x in panel[spec.x]:
            settings = chosen | {spec.x: x} | {"n_nodes": 1, "n_rounds": 1}
            yield settings, float(x), label(kept, values, "offline"), True


def label(names: Sequence[str], values: Sequence[Any], before: str = "") -> str:
    """A curve's name: the paper's symbols and their values.

    >>> label(["n_tasks", "n_rounds"], [4, 1])
    'T=4, T_c=1'
    """
    parts = [f"{SETTINGS[n][0]}={v:g}" for n, v in zip(names, values, strict=True)]
    return ", ".join(([before] if before else []) + parts) or "error"


def even_blocks(settings: Settings) -> list[int]:
    """The block sizes."""
    return even_sizes(settings["n_features"], settings["n_nodes"])


def model_of(settings: Settings, n_tasks: int) -> Model:
    """What these settings simulate, with even blocks."""
    return make_model(
        n_tasks,
        settings["n_samples"],
        even_blocks(settings),
        n_shared=settings["n_shared"],
        noise_var=settings["noise_var"],
        n_rounds=settings["n_rounds"],
        correlation=settings["correlation"],
    )


def predicted(settings: Settings) -> float | None:
    """Theorem 1 where its assumptions hold and it is finite, None elsewhere."""
    curve = predicted_curve(settings)
    return None if curve is None or not np.isfinite(curve[-1]) else float(curve[-1])


def predicted_curve(settings: Settings) -> Array | None:
    """G_T after 1..T tasks in closed form: one round, or every p_k > n + 1."""
    sizes, n = even_blocks(settings), settings["n_samples"]
    closed = settings["n_rounds"] == 1 or min(sizes) > n + 1
    if settings["correlation"] > 0 or not closed:
        return None
    similarity = Similarity.shared(settings["n_tasks"], sizes, settings["n_shared"])
    return generalization_error(similarity, n, settings["noise_var"], settings["n_rounds"])


def offline_predicted(settings: Settings) -> float | None:
    """The error of all tasks at once in closed form, where it is finite."""
    if settings["correlation"] > 0:
        return None
    similarity = Similarity.shared(
        settings["n_tasks"], [settings["n_features"]], settings["n_shared"]
    )
    error = offline_error(similarity, settings["n_samples"], settings["noise_var"])[-1]
    return float(error) if np.isfinite(error) else None


def heavy(settings: Settings, offline: bool = False) -> bool:
    """Whether some block is so nearly square that the error's variance is infinite; offline, all
    tasks' rows together."""
    rows = settings["n_samples"] * (settings["n_tasks"] if offline else 1)
    return bool(np.any(np.abs(np.array(even_blocks(settings)) - rows) <= 4))


def _by_shape(points: Sequence[Point]) -> list[list[Point]]:
    """Points that one draw can serve."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        s = point.settings
        key = (s["n_samples"], s["n_features"], s["correlation"], point.offline)
        groups.setdefault(key, []).append(point)
    return list(groups.values())


def _units(
    number: int, group: list[Point], trials: int, seed: int, device: str | None
) -> Iterator[Unit]:
    """The work for points of one shape, by the cheapest way that fits."""
    horizon = max(point.settings["n_tasks"] for point in group)
    models = [model_of(point.settings, horizon) for point in group]
    variants, which = _distinct(models)
    wanted = [(i, point.settings["n_tasks"]) for i, point in zip(which, group, strict=True)]
    model = variants[0]
    m, p = min(max(model.n_samples), model.n_features), model.n_features
    if group[0].offline:
        run, each = offline_values, 3e-11 * m * p * p + 5e-11 * p**3
    else:
        rounds = max(v.n_rounds for v in variants)
        run, each = row_values, 6e-11 * m * p * (min(m, p) + 200) + 5e-10 * (rounds - 1) * m * m
        by_span = sum(v.n_nodes * (1e-4 + 4e-8 * m**2 + 1e-10 * m**3) for v in variants)
        if all(span.fits(v) for v in variants) and by_span < each:
            run, each = span_values, by_span  # a draw for each model, but none as wide as p
    for batch in batched(model, trials, len(variants), find_device(device)):
        yield Unit(
            f"{number}-{batch.start}",
            tuple(point.row for point in group),
            batch,
            len(batch) * horizon * (each + 3e-4),
            partial(run, variants, wanted, seed, batch, device),
        )


def _distinct(models: list[Model]) -> tuple[list[Model], list[int]]:
    """The models that differ, and which of them each point uses."""
    known: dict[tuple[Any, ...], int] = {}
    which = []
    for m in models:
        key = (m.partition, m.n_shared, m.noise_var, m.n_rounds)
        which.append(known.setdefault(key, len(known)))
    return [models[which.index(i)] for i in range(len(known))], which


def row_values(
    models: list[Model], wanted: Wanted, seed: int, batch: range, device: str | None
) -> Array:
    """One draw of every task's rows for all models."""
    where = find_device(device)
    return _after(models, by_rows(models, where.draws(seed, batch), where), wanted)


def span_values(
    models: list[Model], wanted: Wanted, seed: int, batch: range, device: str | None
) -> Array:
    """A draw for each model, of the few directions that matter."""
    where = find_device(device)
    D = [span.by_span(model, where.draws(seed, batch), where) for model in models]
    return _after(models, D, wanted)


def offline_values(
    models: list[Model], wanted: Wanted, seed: int, batch: range, device: str | None
) -> Array:
    """Least squares on the first T tasks."""
    asked, where = sorted({T for _, T in wanted}), find_device(device)
    values = offline_by_rows(models, asked, where.draws(seed, batch), where)
    return np.stack([values[i, :, asked.index(T)] for i, T in wanted], axis=1)


def _after(models: list[Model], D: list[Array], wanted: Wanted) -> Array:
    """G_T of the estimate after T tasks: the first T tasks are a stream too."""
    columns = [D[i][:, T - 1, :T].mean(axis=-1) + models[i].noise_var[0] for i, T in wanted]
    return np.stack(columns, axis=1)
