"""What a node does to its columns before it learns from them: standardise, fill what is missing.

Nothing of it needs another node, and nothing looks at a target. A node's numbers (count, mean,
squared deviations; the centre and scale in force) are part of its state, so a saved model prepares
new data as it prepared the old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .solvers.base import ENOUGH, Array, Block, Memory

SCALINGS = (None, "first", "running")
MISSING = ("refuse", "mean")


class Prepared(NamedTuple):
    block: Block
    numbers: dict[str, Array]  # the new state
    rescaled: Array | None  # new scale over old, per column, where one of them has changed


@dataclass(frozen=True)
class Preparation:
    """``scaling``: None; "first": scaled by the first task(s), until ten samples have been seen of
    a column and it has varied, and fixed from then on; "running": by all tasks so far.
    ``missing``: "refuse", or "mean": filled with the column's mean so far.

    With ``centred`` the mean of the first task is taken off as well. It never moves: another origin
    would change what the weights and the memory mean, and the intercept follows the stream. Without
    an intercept to take it up there is no centring.
    """

    scaling: str | None = None
    missing: str = "refuse"
    centred: bool = False

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling={self.scaling!r} must be None, 'first' or 'running'")
        if self.missing not in MISSING:
            raise ValueError(f"missing={self.missing!r} must be 'refuse' or 'mean'")

    @property
    def idle(self) -> bool:
        return self.scaling is None and self.missing == "refuse"

    def apply(self, block: Block, numbers: Memory) -> Prepared:
        """Prepare a task's block; the numbers include this task's samples."""
        if self.idle:
            return Prepared(block, {}, None)
        if sparse.issparse(block):
            raise ValueError("scaling and missing='mean' need dense columns: these are sparse")
        new = self._updated(block, numbers)
        ready = self.transform(block, new)
        if not numbers or np.array_equal(new["scale"], numbers["scale"]):
            return Prepared(ready, new, None)
        return Prepared(ready, new, new["scale"] / numbers["scale"])

    def transform(self, block: Array, numbers: Memory) -> Array:
        ready = np.array(block)
        if self.missing == "mean":
            gaps = np.isnan(ready)
            if gaps.any():
                ready[gaps] = np.broadcast_to(numbers["mean"], ready.shape)[gaps]
        if self.scaling is not None:
            ready -= numbers["centre"].astype(ready.dtype)
            ready /= numbers["scale"].astype(ready.dtype)
        return ready

    def outward(self, weights: Array, numbers: Memory) -> tuple[Array, Array]:
        """The weights for columns as they come, and what centring adds to the intercept."""
        if self.scaling is None or not numbers:
            return weights, np.zeros(weights.shape[1])
        p = len(numbers["scale"])  # a last row, if there is one, is the intercept's
        own = weights[:p] / numbers["scale"][:, None].astype(weights.dtype)
        return np.concatenate([own, weights[p:]]), -(numbers["centre"] @ own.astype(float))

    def _updated(self, block: Array, numbers: Memory) -> dict[str, Array]:
        p = block.shape[1]
        old = numbers or {
            "count": np.zeros(p), "mean": np.zeros(p), "deviations": np.zeros(p),
            "centre": np.zeros(p), "scale": np.ones(p),
        }  # fmt: skip
        present = np.isfinite(block)
        count = present.sum(axis=0).astype(float)
        values = np.where(present, block, 0).astype(float)
        mean = values.sum(axis=0) / np.maximum(count, 1)
        deviations = np.sum(np.where(present, values - mean, 0.0) ** 2, axis=0)
        total = old["count"] + count
        gap = np.where(count > 0, mean - old["mean"], 0.0)
        share = count / np.maximum(total, 1)
        joined = {
            "count": total,
            "mean": old["mean"] + gap * share,
            "deviations": old["deviations"] + deviations + gap**2 * old["count"] * share,
        }
        # constant columns keep scale 1: centred they are zero, and harmless
        if self.scaling is None:
            return joined | {"centre": old["centre"], "scale": old["scale"]}
        varies = joined["deviations"] > 1e-20 * total * joined["mean"] ** 2
        spread = np.sqrt(joined["deviations"] / np.maximum(total, 1))
        fixed = np.zeros(p, dtype=bool)
        if self.scaling == "first":
            varied = old["deviations"] > 1e-20 * old["count"] * old["mean"] ** 2
            fixed = (old["count"] >= ENOUGH) & varied
        scale = np.where(fixed, old["scale"], np.where(varies, spread, 1.0))
        # a column without any sample so far has weight zero, and may still be given its origin
        centre = np.where(old["count"] > 0, old["centre"], mean) if self.centred else old["centre"]
        return joined | {"centre": centre, "scale": scale}
