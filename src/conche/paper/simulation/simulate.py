"""Monte Carlo of the paper's model, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from ...common.arrays import Array
from ...common.checks import flag, one_of, whole
from ...errors import ParameterError
from ..sizes import Numbers
from . import span
from .model import Generators, Model, ModelSettings, make_model, trial_generators
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
        """The mean error over all trials, after 1..T tasks."""
        return np.asarray(self.trials.mean(axis=0))

    @property
    def stderr(self) -> Array:
        """Standard error of the mean."""
        return np.asarray(self.trials.std(axis=0, ddof=1) / np.sqrt(len(self.trials)))


def simulate(
    n_tasks: int,
    n_samples: Numbers,
    partition: Sequence[int] | Array,
    *,
    trials: int = 100,
    seed: int = 0,
    method: str = "auto",
    n_jobs: int | None = None,
    training: bool = False,
    **model: Unpack[ModelSettings],
) -> Simulation:
    """Simulate Algorithm 1 on the model of the paper's Section IV.

    Parameters
    ----------
    n_tasks, partition : T, and the block sizes p_k.
    n_samples : n_t, one number or one per task.
    trials : independent trials, at least 2.
    seed : the same seed gives the same trials for any ``n_jobs``.
    method : ``"plain"`` draws every matrix and runs the estimator; ``"auto"`` picks a reduction
        that is exact in distribution: the triangular factor of a tall task (`rows`), or the few
        directions that matter of very wide blocks (`span`).
    n_jobs : processes, as joblib counts them.
    training : whether to add the training error on the tasks seen so far.
    n_shared : unknowns that all tasks have in common (p_S), 0 unless given.
    noise_var : sigma_t^2, one number or one per task, 0.01 unless given.
    n_rounds : rounds per task (T_c), 1 unless given.
    correlation : Toeplitz correlation of the features (epsilon), 0 unless given.
    weights : (n_tasks, n_features), the unknowns of all trials; drawn anew in each unless given.

    >>> simulate(3, 64, [8] * 4, n_shared=24, trials=400).mean.round(2)
    array([0.68, 0.48, 0.36])
    """
    from joblib import Parallel, delayed

    chosen = make_model(n_tasks, n_samples, partition, **model)
    whole("trials", trials, 2)  # fewer have no standard error
    whole("seed", seed, 0)
    if flag("training", training) and method != "auto":
        raise ParameterError("training=True needs method='auto'")
    run = _with_training if training else choose(chosen, method)
    work = (delayed(run_batch)(run, chosen, seed, batch) for batch in batched(chosen, trials))
    values = np.concatenate(Parallel(n_jobs=n_jobs)(work))
    if training:
        return Simulation(values[..., 0], values[..., 1])
    return Simulation(chosen.error(values))


def choose(model: Model, method: str) -> Batch:
    """Which of the three ways to sample a trial."""
    if one_of("method", method, ("auto", "plain")) == "plain":
        return plain
    return span.by_span if span.fits(model) else one_by_rows


def one_by_rows(model: Model, rngs: Generators) -> Array:
    """`by_rows` for a single model."""
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
    """These trials, each with its own generator."""
    return run(model, trial_generators(seed, batch))
