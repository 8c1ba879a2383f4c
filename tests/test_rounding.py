"""Bounds are never below the truth, which is found in extended precision; losses near zero too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory
from conche.common.arrays import Array

Wide = np.longdouble
KINDS = ("memory", "blocks", "safe", "adaptive", "damped")
pytestmark = pytest.mark.filterwarnings("ignore")


def above(X: Array, y: Array, theta: Array, ridge: Array) -> float:
    """How far 1/2 |y - X theta|^2 + 1/2 theta.ridge theta is above its least value."""
    X, y, theta, ridge = (a.astype(Wide) for a in (X, y, theta, ridge))
    size = np.sqrt(np.sum(X**2, axis=0) + ridge)
    size = np.where(size > 0, size, 1).astype(float)
    rows = np.vstack([X.astype(float) / size, np.diag(np.sqrt(ridge.astype(float)) / size)])
    inverse = np.linalg.pinv(rows)
    best = np.zeros_like(theta)
    for _ in range(8):  # refined with residuals in extended precision
        left = np.concatenate([y - X @ best, -np.sqrt(ridge) * best]).astype(float)
        best = best + (inverse @ left) / size

    def value(w: Array) -> Any:
        return (np.sum((y - X @ w) ** 2) + np.sum(ridge * w**2)) / 2

    return float(value(theta) - value(best))


def model_of(kind: str, rng: np.random.Generator, n_nodes: int, ridge: float) -> Any:
    options: dict[str, Any] = dict(n_nodes=n_nodes, n_rounds=int(rng.choice([1, 3, 10, 40])))
    if kind in ("memory", "blocks"):
        rank = 0 if kind == "blocks" else None
        solver = Memory(rank=rank, ridge=ridge)
        return conche.ConcheRegressor(
            solver=solver, fit_intercept=False, scaling=None, tol=None, **options
        )
    options["fit_intercept"] = bool(rng.random() < 0.5)
    if kind == "damped":
        damped = conche.Damped(damping=ridge)
        return conche.CoCoARegressor(solver=damped, **options)
    scaling = [None, "first"][int(rng.integers(2))]
    options |= dict(steps=kind, scaling=scaling)
    return conche.CoCoARegressor(**options)


def case(seed: int, dtype: str) -> tuple[float, float, str]:
    """The bound after the last task, the truth, and which kind of model it was."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 80)), int(rng.integers(1, 40))
    kind = KINDS[seed % len(KINDS)]
    ridge = 10 ** rng.uniform(-3, 1)
    model = model_of(kind, rng, int(rng.integers(1, min(p, 6) + 1)), ridge)
    scale, origin = 10 ** rng.uniform(-2, 2), rng.choice([0, 0, 3, 100])
    noise = rng.choice([0, 0, 1e-6, 1e-3, 1])
    w = rng.standard_normal(p) * 10 ** rng.uniform(-3, 1)
    for _ in range(1 if kind in ("memory", "blocks", "damped") else rng.integers(1, 4)):
        X = rng.standard_normal((n, p)) * scale + origin
        y = X @ w + noise * rng.standard_normal(n)
        X, y = X.astype(dtype), y.astype(dtype)
        model.partial_fit(X, y)
    theta, penalty = model.coef_, np.full(p, ridge if kind in ("memory", "blocks") else 0.0)
    if model.fit_intercept:
        X = np.column_stack([X, np.ones(n)])
        theta, penalty = np.append(theta, model.intercept_), np.append(penalty, 0.0)
    bound = model.history_[-1]["bound"]
    if bound is None:  # no rounds: what is said is a share of the objective
        gap = model.offline_gap_
        bound = gap.bound * gap.objective / n
    return bound, above(X, y, theta, penalty) / n, kind


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_thousand_bounds_hold(dtype: str) -> None:
    missed = [(s, *found) for s in range(1000) if (found := case(s, dtype))[0] < found[1]]
    assert not missed, missed[:3]
