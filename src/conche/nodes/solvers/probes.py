"""What a node keeps to know what memory of limited size has lost; it learns nothing from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...common.arrays import Array, like, space, zeros
from ..layout import Layout
from ..scaling import Kept

if TYPE_CHECKING:
    from ..stack import Stack

PROBES = 64
FEW = 16  # where columns are sparse, and memory should not be much larger than they are


@dataclass(frozen=True)
class Probes:
    """Random directions whose curvature is kept exactly, and what the blocks' own remainders have
    made of the weights' moves; in units of the ridge."""

    o: Array  # p_k x probes
    Ho: Array  # this node's rows of H o
    owed: Array  # p_k x outputs: sum over tasks of E_kk d_k

    @classmethod
    def of(cls, kept: Kept, o: Array) -> Probes:
        """As they were kept; those that were `drawn` before the first task."""
        if "probes" in kept:
            return cls(kept["probes"], kept["curved"], kept["owed"])
        return cls(o, space(o).zeros_like(o), zeros(o, o.shape[0], 1))

    @staticmethod
    def drawn(p: int, seed: list[int], count: int = PROBES, stack: Stack | None = None) -> Array:
        """Directions of one node, or of all in a stack, as each would draw them alone."""
        if stack is None:
            return np.random.default_rng([*seed, 1]).standard_normal((p, count))
        every = np.empty((p, count))
        for k, own in enumerate(stack.own):
            every[own] = Probes.drawn(len(own), [*seed[:2], k], count)
        return every

    @staticmethod
    def laid_out(kept: Kept, layout: Layout) -> dict[str, Array]:
        """For more columns or fewer: nothing is known of new ones, but probes look there too."""
        if "probes" not in kept:
            return {}
        new = {key: layout.along(kept[key]) for key in ("probes", "curved", "owed")}
        rng = np.random.default_rng([layout.size, *layout.places[:1]])
        drawn = rng.standard_normal((layout.size, kept["probes"].shape[1]))
        new["probes"] = np.where(layout.is_new[:, None], drawn, new["probes"])
        return new

    def in_units(self, discount: float, change: Array | float) -> Probes:
        """In this task's units, with the past weighed down."""
        columns = like(self.o, np.reshape(change, (-1, 1)))
        past = discount * columns
        return Probes(self.o / columns, past * self.Ho, past * self.owed)

    def after(self, curved: Array, own: Array) -> Probes:
        """After a task that has added so much to H o, and E_kk d_k to what is owed."""
        return Probes(self.o, self.Ho + curved, self.owed + own)

    def to_keep(self) -> dict[str, Array]:
        """By name."""
        return {"probes": self.o, "curved": self.Ho, "owed": self.owed}
