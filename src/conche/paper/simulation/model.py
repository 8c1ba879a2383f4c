"""What is simulated: the paper's model, and the numbers that describe one setting of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...common.arrays import Array
from ...common.checks import real, whole
from ...errors import ParameterError
from ..sizes import Numbers, block_sizes, noise_per_task, samples_per_task


@dataclass(frozen=True, eq=False)
class Model:
    """T Gaussian tasks over K blocks; each trial draws its unknowns, unless they are given.

    Models with the same ``n_samples``, ``n_features`` and ``correlation`` have the same *shape*:
    one draw serves them all.
    """

    n_samples: tuple[int, ...]
    noise_var: tuple[float, ...]
    partition: tuple[int, ...]
    n_shared: int
    n_rounds: int
    correlation: float
    weights: Array | None = None

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.n_samples)

    @property
    def n_features(self) -> int:
        """p."""
        return sum(self.partition)

    @property
    def n_nodes(self) -> int:
        """K."""
        return len(self.partition)

    def error(self, distances: Array) -> Array:
        """G_T after 1..T tasks from the distances |w_t - w*_s|^2 (... x T x T)."""
        return np.asarray(distances.mean(axis=-1) + np.mean(self.noise_var))


class ModelSettings(TypedDict, total=False):
    """What `make_model` and `conche.simulate` take by name, beside the sizes."""

    n_shared: int
    noise_var: Numbers
    n_rounds: int
    correlation: float
    weights: ArrayLike | None


def make_model(
    n_tasks: int,
    n_samples: Numbers,
    partition: Sequence[int] | Array,
    **model: Unpack[ModelSettings],
) -> Model:
    """A checked `Model`; what cannot be simulated is refused by name.

    The settings are those of `conche.simulate`.
    """
    unknown = sorted(model.keys() - ModelSettings.__optional_keys__)
    if unknown:
        known = ", ".join(sorted(ModelSettings.__optional_keys__))
        raise ParameterError(f"there is no setting {unknown[0]}; those of the model are {known}")
    sizes = tuple(block_sizes(partition).tolist())
    whole("n_tasks", n_tasks)
    correlation = real("correlation", model.get("correlation", 0.0))
    if correlation >= 1:
        raise ParameterError(f"correlation={correlation} must lie below 1")
    return Model(
        n_samples=tuple(samples_per_task(n_samples, n_tasks).tolist()),
        noise_var=tuple(noise_per_task(model.get("noise_var", 0.01), n_tasks).tolist()),
        partition=sizes,
        n_shared=whole("n_shared", model.get("n_shared", 0), 0, sum(sizes)),
        n_rounds=whole("n_rounds", model.get("n_rounds", 1)),
        correlation=correlation,
        weights=_checked_weights(model.get("weights"), (n_tasks, sum(sizes))),
    )


def _checked_weights(weights: ArrayLike | None, shape: tuple[int, int]) -> Array | None:
    if weights is None:
        return None
    W = np.asarray(weights, dtype=float)
    if W.shape != shape:
        raise ParameterError(f"weights have shape {W.shape}, expected {shape}")
    if not np.all(np.isfinite(W)):
        raise ParameterError("weights have missing or infinite values")
    return W
