"""Monte Carlo of the paper's model, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

import numpy as np

from ...common.arrays import Array
from ...common.checks import flag, one_of, whole
from ...common.device import Device, Draws, find_device
from ...errors import ParameterError
from ..sizes import Numbers
from . import span
from .model import Model, ModelSettings, make_model
from .plain import plain
from .rows import by_rows, learning_curves

Batch = Callable[[Model, Any, Device], Array]
LARGEST_BATCH = {"cpu": 64, "cuda": 1024}


class Settings(ModelSettings, total=False):
    """The model's, and what to look at beside its errors."""

    training: bool


@dataclass(frozen=True, eq=False)
class Simulation:
    """``trials`` (n_trials x n_tasks): G_T after 1..T tasks, trial by trial.

    ``training``, where asked for, is f_t of the same estimates: their error on the tasks seen.

    Examples
    --------
    >>> import conche
    >>> found = conche.simulate(3, 64, [8] * 4, n_shared=24, trials=400)
    >>> found.trials.shape, found.mean.shape, bool((found.stderr < 0.01).all())
    ((400, 3), (3,), True)
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
    device: str | None = None,
    **model: Unpack[Settings],
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
    n_jobs : processes, as joblib counts them; one on a GPU.
    device : None or "cpu"; "cuda". The same seed gives the same trials on one device, and others of
        the same distribution on another.
    training : whether to add the training error on the tasks seen so far.
    n_shared : unknowns that all tasks have in common (p_S), 0 unless given.
    noise_var : sigma_t^2, one number or one per task, 0.01 unless given.
    n_rounds : rounds per task (T_c), 1 unless given.
    correlation : Toeplitz correlation of the features (epsilon), 0 unless given.
    weights : (n_tasks, n_features), the unknowns of all trials; drawn anew in each unless given.

    Examples
    --------
    >>> simulate(3, 64, [8] * 4, n_shared=24, trials=400).mean.round(2)
    array([0.68, 0.48, 0.36])
    """
    from joblib import Parallel, delayed

    training = flag("training", model.pop("training", False))
    chosen = make_model(n_tasks, n_samples, partition, **cast(ModelSettings, model))
    whole("trials", trials, 2)  # fewer have no standard error
    whole("seed", seed, 0)
    if training and method != "auto":
        raise ParameterError("training=True needs method='auto'")
    where = find_device(device)
    if where.name != "cpu" and method == "plain":
        raise ParameterError("method='plain' runs the estimator: on the cpu alone")
    run = _with_training if training else choose(chosen, method)
    batches = batched(chosen, trials, 1, where)
    work = (delayed(run_batch)(run, chosen, seed, batch, device) for batch in batches)
    values = np.concatenate(Parallel(n_jobs=n_jobs if where.name == "cpu" else 1)(work))
    if training:
        return Simulation(values[..., 0], values[..., 1])
    return Simulation(chosen.error(values))


def choose(model: Model, method: str) -> Batch:
    """Which of the three ways to sample a trial."""
    if one_of("method", method, ("auto", "plain")) == "plain":
        return plain
    return span.by_span if span.fits(model) else one_by_rows


def one_by_rows(model: Model, draws: Draws, device: Device) -> Array:
    """`by_rows` for a single model."""
    return by_rows([model], draws, device)[0]


def _with_training(model: Model, draws: Draws, device: Device) -> Array:
    """trials x T x 2: generalization and training error at each task's last round."""
    (G,), (F,) = learning_curves([model], 1, draws, device)
    last = slice(model.n_rounds - 1, None, model.n_rounds)
    return np.stack([G[:, last], F[:, last]], axis=-1)


def batched(model: Model, trials: int, settings: int, device: Device) -> list[range]:
    """Trials that are computed together: as many as keep the matrices small, or as a GPU has
    memory for. Results do not depend on it: every trial has its own generator."""
    n, p, T = max(model.n_samples), model.n_features, model.n_tasks
    rows = min(n, p)
    matrix = rows * (model.n_nodes * n if span.fits(model) else p)
    entries = matrix + settings * T * (T + min(p, 10**6))
    size = int(np.clip(device.room() / entries, 1, LARGEST_BATCH.get(device.name, 64)))
    return [range(a, min(a + size, trials)) for a in range(0, trials, size)]


def run_batch(run: Batch, model: Model, seed: int, batch: range, device: str | None) -> Array:
    """These trials, each with its own generator."""
    where = find_device(device)
    return run(model, where.draws(seed, batch), where)
