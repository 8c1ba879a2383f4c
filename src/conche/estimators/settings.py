"""What an estimator's parameters mean, and which of them cannot be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from ..cocoa import Rule
from ..network.graph import Graph
from ..partition import Partition
from ..solvers import (
    Auto,
    Curvature,
    Damped,
    Exact,
    Inexact,
    Solver,
    Sparse,
    default_sketch_size,
)
from .helpers import check

SOLVERS = ("exact", "damped", "memory", "sparse")


def make_solver(model: Any, partition: Partition) -> Solver:
    if isinstance(model.solver, Solver):
        return model.solver
    if model.damping == "auto":
        return Auto(_named(model, partition, None))
    return _named(model, partition, model.damping)


def _named(model: Any, partition: Partition, damping: Any) -> Solver:
    damping = None if damping is None else float(damping)
    if model.solver == "sparse":
        assert damping is not None
        return Sparse(damping, float(model.l1_ratio))
    if model.local_steps is not None:
        base = Exact() if model.solver == "exact" else Damped(damping)
        return Inexact(base, int(model.local_steps))
    if model.solver == "exact":
        return Exact()
    if model.solver == "damped":
        return Damped(damping)
    size = model.sketch_size
    if size is None:
        size = default_sketch_size(partition.n_features, len(partition))
    return Curvature(int(size), damping, float(model.discount), int(model.seed))


def make_rule(model: Any) -> Rule:
    return Rule(int(model.n_rounds), model.acceleration, model.aggregation, model.tol)


def check_parameters(model: Any) -> None:
    """Refuse what cannot be, one line each."""
    check("n_rounds", model.n_rounds, Integral, low=1)
    check("discount", model.discount, Real, low=0, high=1)
    check("seed", model.seed, Integral, low=0)
    if not isinstance(model.solver, Solver) and model.solver not in SOLVERS:
        raise ValueError(f"solver={model.solver!r} must be one of {SOLVERS} or a Solver object")
    if model.damping == "auto" and model.solver not in ("damped", "memory"):
        raise ValueError(f"damping='auto' is for 'damped' and 'memory', not {model.solver!r}")
    if model.damping is not None and model.damping != "auto":
        check("damping", model.damping, Real, low=0, high=np.finfo(float).max)
    if model.sketch_size is not None:
        check("sketch_size", model.sketch_size, Integral, low=0)
    if model.tol is not None:
        check("tol", model.tol, Real, low=0)
    if not isinstance(model.fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept={model.fit_intercept!r} must be True or False")
    _check_rounds(model)
    _check_sparse(model)


def _check_rounds(model: Any) -> None:
    if model.acceleration not in (None, "cg"):
        raise ValueError(f"acceleration={model.acceleration!r} must be None or 'cg'")
    if model.aggregation not in ("safe", "adaptive"):
        raise ValueError(f"aggregation={model.aggregation!r} must be 'safe' or 'adaptive'")
    if model.acceleration == "cg" and model.aggregation == "adaptive":
        raise ValueError("aggregation='adaptive' is for acceleration=None: 'cg' has its own step")
    if model.local_steps is not None:
        check("local_steps", model.local_steps, Integral, low=1)
        if model.solver not in ("exact", "damped"):
            raise ValueError(f"local_steps is for 'exact' and 'damped', not {model.solver!r}")
    if isinstance(model.network, Graph) and (
        model.acceleration is not None or model.aggregation != "safe"
    ):
        raise ValueError(
            "a Graph has no centre to choose steps: acceleration=None and aggregation='safe'"
        )


def _check_sparse(model: Any) -> None:
    named = model.solver == "sparse"
    if named and model.damping is None:
        raise ValueError("solver='sparse' needs damping: scikit-learn's alpha, a number above 0")
    if named:
        check("damping", model.damping, Real, low=1e-100, high=1e100)
        check("l1_ratio", model.l1_ratio, Real, low=1e-6, high=1)
    if named or getattr(model.solver, "sparse", False):
        if model.acceleration is not None:
            raise ValueError("solver='sparse' is for acceleration=None: its steps are not linear")
        if isinstance(model.network, Graph):
            raise ValueError("solver='sparse' is not for a Graph")
