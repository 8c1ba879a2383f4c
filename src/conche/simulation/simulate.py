"""Monte Carlo of the paper's model, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..theory.recursion import per_task
from .model import Array, Model, check_sizes, trial_generator
from .trials import by_rows, by_span, plain, span_size

Trial = Callable[[Model, np.random.Generator], Array]


@dataclass(frozen=True, eq=False)
class Simulation:
    """``trials`` (n_trials x n_tasks): G_T after 1..T tasks, trial by trial."""

    trials: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.trials.mean(axis=0))

    @property
    def stderr(self) -> Array:
        """Standard error of the mean."""
        return np.asarray(self.trials.std(axis=0, ddof=1) / np.sqrt(len(self.trials)))


def simulate(
    n_tasks: int,
    n_samples: int | Sequence[int],
    partition: Sequence[int],
    n_shared: int = 0,
    noise_var: float | Sequence[float] = 0.01,
    n_rounds: int = 1,
    correlation: float = 0.0,
    trials: int = 100,
    seed: int = 0,
    method: str = "auto",
    n_jobs: int | None = None,
    weights: Any = None,
) -> Simulation:
    """Simulate Algorithm 1 on the model of the paper's Section IV.

    ``weights`` (n_tasks x n_features) fixes the unknowns for all trials; otherwise they are drawn
    anew in each. ``method="plain"`` draws every matrix and runs the real nodes; ``"auto"`` picks a
    reduction that is exact in distribution (`conche.simulation.trials`). The same seed gives the
    same trials for any ``n_jobs``.
    """
    model = _model(
        n_tasks, n_samples, partition, n_shared, noise_var, n_rounds, correlation, weights
    )
    if not isinstance(trials, Integral) or trials < 2:
        raise ValueError(f"trials={trials}: a standard error needs a whole number, at least 2")
    run = choose(model, method)
    tasks = (delayed(_one)(run, model, seed, i) for i in range(trials))
    return Simulation(np.array(Parallel(n_jobs=n_jobs)(tasks)))


def choose(model: Model, method: str) -> Trial:
    """Which of the three ways to sample a trial."""
    if method == "plain":
        return plain
    if method != "auto":
        raise ValueError(f"method={method!r} must be 'auto' or 'plain'")
    most = max(model.n_samples)
    widths = [p - span_size(model, k) - 1 for k, p in enumerate(model.partition)]
    return by_span if model.correlation == 0 and min(widths) >= most else by_rows


def _one(run: Trial, model: Model, seed: int, trial: int) -> Array:
    return run(model, trial_generator(seed, trial))


def _model(
    n_tasks: int,
    n_samples: Any,
    partition: Sequence[int],
    n_shared: int,
    noise_var: Any,
    n_rounds: int,
    correlation: float,
    weights: Any,
) -> Model:
    sizes = check_sizes(partition)
    for name, count in (("n_tasks", n_tasks), ("n_rounds", n_rounds), ("n_shared", n_shared)):
        if not isinstance(count, Integral) or count < (name != "n_shared"):
            raise ValueError(f"{name}={count!r} must be a whole number of at least 1")
    if not 0 <= n_shared <= sum(sizes):
        raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={sum(sizes)}")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation={correlation} must lie between 0 and 1")
    samples = per_task("n_samples", n_samples, n_tasks)
    noise = per_task("noise_var", noise_var, n_tasks)
    for name, values, least in (("n_samples", samples, 1), ("noise_var", noise, 0)):
        if not (values.min() >= least and np.all(np.isfinite(values))):
            raise ValueError(f"{name}={values.min():g} must be at least {least} and finite")
    if np.any(samples != np.floor(samples)):
        raise ValueError("n_samples must be whole numbers")
    W = None if weights is None else np.asarray(weights, dtype=float)
    if W is not None and W.shape != (n_tasks, sum(sizes)):
        raise ValueError(f"weights have shape {W.shape}, expected {(n_tasks, sum(sizes))}")
    if W is not None and not np.all(np.isfinite(W)):
        raise ValueError("weights have missing or infinite values")
    return Model(
        tuple(int(n) for n in samples), tuple(float(s) for s in noise), sizes, n_shared, n_rounds,
        correlation, W,
    )  # fmt: skip
