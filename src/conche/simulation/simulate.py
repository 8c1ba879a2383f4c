"""Monte Carlo of the paper's model, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from . import span
from .model import Array, Generators, Model, make_model, trial_generator
from .plain import plain
from .rows import by_rows, learning_curves

Batch = Callable[[Model, Generators], Array]
BATCH_ENTRIES = 2e6  # of all matrices that a batch of trials holds together
LARGEST_BATCH = 64


@dataclass(frozen=True, eq=False)
class Simulation:
    """``trials`` (n_trials x n_tasks): G_T after 1..T tasks, trial by trial.

    ``training``, where asked for, is f_t of the same estimates: their error on the tasks seen.
    """

    trials: Array
    training: Array | None = None

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
    training: bool = False,
) -> Simulation:
    """Simulate Algorithm 1 on the model of the paper's Section IV.

    ``weights`` (n_tasks x n_features) fixes the unknowns for all trials; otherwise they are drawn
    anew in each. ``method="plain"`` draws every matrix and runs the real nodes; ``"auto"`` picks a
    reduction that is exact in distribution: the triangular factor of a tall task (`rows`), or the
    few directions that matter of very wide blocks (`span`). ``training`` adds the training error.
    The same seed gives the same trials for any ``n_jobs``.
    """
    model = make_model(
        n_tasks, n_samples, partition, n_shared, noise_var, n_rounds, correlation, weights
    )
    if not isinstance(trials, Integral) or trials < 2:
        raise ValueError(f"trials={trials}: a standard error needs a whole number, at least 2")
    if training and method != "auto":
        raise ValueError("training=True needs method='auto'")
    run = _with_training if training else choose(model, method)
    batches = batched(model, int(trials))
    work = (delayed(run_batch)(run, model, seed, batch) for batch in batches)
    values = np.concatenate(Parallel(n_jobs=n_jobs)(work))
    if training:
        return Simulation(values[..., 0], values[..., 1])
    return Simulation(model.error(values))


def choose(model: Model, method: str) -> Batch:
    """Which of the three ways to sample a trial."""
    if method == "plain":
        return plain
    if method != "auto":
        raise ValueError(f"method={method!r} must be 'auto' or 'plain'")
    return span.by_span if span.fits(model) else one_by_rows


def one_by_rows(model: Model, rngs: Generators) -> Array:
    return by_rows([model], rngs)[0]


def _with_training(model: Model, rngs: Generators) -> Array:
    """trials x T x 2: generalization and training error at each task's last round."""
    (G,), (F,) = learning_curves([model], 1, rngs)
    last = slice(model.n_rounds - 1, None, model.n_rounds)
    return np.stack([G[:, last], F[:, last]], axis=-1)


def batched(model: Model, trials: int, settings: int = 1) -> list[range]:
    """Trials that are computed together: as many as keep the matrices small.

    It depends on the sizes alone, so that results never depend on how the work is shared.
    """
    n, p, T = max(model.n_samples), model.n_features, model.n_tasks
    rows = min(n, p)
    matrix = rows * (model.n_nodes * n if span.fits(model) else p)
    entries = matrix + settings * T * (T + min(p, 10**6))
    size = int(np.clip(BATCH_ENTRIES / entries, 1, LARGEST_BATCH))
    return [range(a, min(a + size, trials)) for a in range(0, trials, size)]


def run_batch(run: Batch, model: Model, seed: int, batch: range) -> Array:
    return run(model, [trial_generator(seed, trial) for trial in batch])
