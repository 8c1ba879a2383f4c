"""What a model remembers: the curvature of all past tasks, direction by direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..estimators.base import LinearModel
from ..memory import correlations

MOST_VALUES = 600  # that are shown
WIDEST = 4096  # columns of a matrix whose eigenvalues are found
HUGE = 1e3  # times all others: the intercept, whose ridge is next to nothing


def spectrum_of(model: LinearModel) -> dict[str, Any] | None:
    """Eigenvalues of what is kept, largest first, and how much that is of all there was.

    ``values`` are in units of the ridge: a direction of value 1 is known as well from the past as
    from the ridge; those of an elastic net, whose ridge is of all tasks together, are plain sums of
    squares. ``rank`` counts the intercept's direction as well, which is not among the values.
    ``share`` is the kept part of all curvature. None where nothing is kept.
    """
    if model.state_.past is not None:
        return _of_sums(model)
    states = [node.to_arrays() for node in model.node_states()]
    values, cut, rank = _pooled(model, states[-1]), 0.0, 0
    if values is None:
        values, cut, rank = _principal(model, states)
    if values is None or not len(values):
        return None
    values = np.sort(np.maximum(values, 0.0))[::-1]
    total = float(values.sum()) + cut
    return {
        "values": values[:MOST_VALUES],
        "n_values": len(values),
        "rank": rank if cut else None,
        "unit": "sum of squares" if "kept.rows" in states[-1] else "in units of the ridge",
        "weights": sum(model.partition_.weight_counts()),
        "share": float(values.sum()) / total if total > 0 else 1.0,
        "cut": cut,
    }


def _of_sums(model: LinearModel) -> dict[str, Any] | None:
    """Of all columns on correlations, in units of the ridge where there is one for all."""
    state = model.state_
    assert state.past is not None
    sums = state.past.best.sums
    if min(sums.p, WIDEST) < sums.p and sums.B is None:
        return None
    values, unit = correlations(sums), "sum of squares on standardised columns"
    ridge = np.unique(state.solved.ridge)
    if len(ridge) == 1 and 0 < ridge[0] < np.inf:
        values, unit = values / ridge[0], "in units of the ridge"
    values = np.sort(_but_for_rounding(np.maximum(values, 0.0)))[::-1]
    return {
        "values": values[:MOST_VALUES],
        "n_values": len(values),
        "rank": None,
        "unit": unit,
        "weights": sums.p,
        "share": 1.0,
        "cut": 0.0,
    }


def _pooled(model: LinearModel, last: Mapping[str, Array]) -> Array | None:
    """Of a coordinator that has all columns: products of columns, or rows."""
    if "kept.gram" in last and len(last["kept.gram"]) <= WIDEST:
        return _eigenvalues(_without_intercept(model, last["kept.gram"]))
    if "kept.rows" in last and min(last["kept.rows"].shape, default=0) > 0:
        rows = _rows_without_intercept(model, last["kept.rows"], last["kept.among"])
        if min(rows.shape) > WIDEST:
            return None
        few = rows if len(rows) < rows.shape[1] else rows.T
        return _but_for_rounding(_eigenvalues(few @ few.T))
    return None


def _rows_without_intercept(model: LinearModel, rows: Array, among: Array) -> Array:
    """The other columns, each centred; ``among`` has the numbers of all."""
    own = among == model.partition_.weight_counts()[0] - 1
    if not model.partition_.intercept or not own.any():
        return rows
    along = rows[:, own] / max(float(np.linalg.norm(rows[:, own])), 1e-300)
    return np.asarray(rows[:, ~own] - along @ (along.T @ rows[:, ~own]))


def _without_intercept(model: LinearModel, gram: Array) -> Array:
    """What is left of the other columns when each is centred."""
    own = np.diag(gram)
    place = model.partition_.weight_counts()[0] - 1
    if not model.partition_.intercept or own[place] <= HUGE * np.median(own):
        return gram
    rest = np.delete(np.arange(len(gram)), place)
    along = gram[rest, place]
    return np.asarray(gram[np.ix_(rest, rest)] - np.outer(along, along) / own[place])


def _principal(
    model: LinearModel, states: Sequence[Mapping[str, Array]]
) -> tuple[Array | None, float, int]:
    """Directions that the nodes share, the trace of what they had no room for, and the rank."""
    parts = [state["kept.principal"] for state in states if "kept.principal" in state]
    if not parts or not parts[0].size:
        return None, 0.0, 0
    rests = [state.get("kept.remainder", np.zeros(0)) for state in states]
    left = [np.diag(rest) if rest.ndim == 2 else rest for rest in rests]
    if model.partition_.intercept:  # the last weight of the first node: centre the others
        along, left[0] = parts[0][:, -1], left[0][:-1]
        unit = along / max(float(np.linalg.norm(along)), 1e-300)
        parts[0] = parts[0][:, :-1]
        parts = [part - np.outer(unit, unit @ part) for part in parts]
    values = _eigenvalues(np.asarray(sum(part @ part.T for part in parts)))
    return _but_for_rounding(values), max(float(sum(map(np.sum, left))), 0.0), len(parts[0])


def _but_for_rounding(values: Array) -> Array:
    return values[values > 1e-9 * values.max(initial=0.0)]


def _eigenvalues(M: Array) -> Array:
    return np.asarray(np.linalg.eigvalsh(M), dtype=float)
