"""Memory of limited size: the principal directions of the past, and every block's own curvature.

All nodes together keep V, the ``rank`` principal directions of all past rows (node k its columns
V_k), and node k the remainder E_k of its own block:

    past curvature  =  V^T V + blockdiag(E_k) + ridge,    E_k = H_k - V_k^T V_k,

H_k the block of the past's curvature. So diagonal blocks are exact, and cross blocks the best of
that rank. V^T V is never more than the past says, so E_k is never negative; as long as V has room
for all rows it is zero, and takes none itself. A block of more than `WIDEST_BLOCK` columns keeps
the diagonal of E_k alone. How V is merged with a new task's rows is the coordinator's affair
(`conche.network.principal`); here is what a node answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...common.arrays import Array, Block, like, zeros
from ..layout import Layout
from ..scaling import Kept
from ..spread import Look
from .base import Context, Meeting
from .principal_block import WIDEST_BLOCK, PrincipalBlock
from .probes import FEW, PROBES, Probes
from .ridge import Ridged

# The intercept's ridge. In units of it the constant is so long that what is cut beside it rounds to
# the eps-th part of its square: not a ten-thousandth of the ridge, as with next to none.
NEARLY_FREE = 1e-6
# Of the ridge, in units of a column's variance; ties go to the first.
STRENGTHS = (2.0, 0.02, 0.1, 0.5, 8.0, 32.0, 128.0, 512.0)


@dataclass(frozen=True)
class PrincipalMemory(Ridged[PrincipalBlock]):
    """``rank`` directions, and what remains; ``rank=0`` keeps the blocks alone. Of ``sparse``
    columns no block is kept as a matrix, which would be far larger than they are."""

    free: ClassVar[float] = NEARLY_FREE

    rank: int = 0
    sparse: bool = False
    sums: bool = False  # whether directions are merged by sums alone, and no block is shown

    @property
    def meeting(self) -> Meeting:
        """The nodes merge their directions with a coordinator, if they have any."""
        return Meeting.PRINCIPAL if self.rank else Meeting.CENTRE

    @property
    def news(self) -> frozenset[str]:
        """All that changes the directions, or what they have cost."""
        return frozenset({"weigh", "whole", "merge", "told", "unmerged", "witness"})

    def strengths(self, quadratic: bool) -> tuple[float, ...]:
        return STRENGTHS if quadratic and self.rank and self.damping is None else (1.0,)

    def share(self, context: Context) -> float:
        """One, where strengths say the rest."""
        return 1.0 if len(context.each) > 1 else super().share(context)

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """Also how many directions there are so far, which is the same on all nodes: for every
        column."""
        directions = kept["principal"].shape[0] if "principal" in kept else 0
        return np.append(super().report(block, kept, look), directions * block.shape[1])

    def agree(self, report: Array, context: Context) -> Context:
        rows = round(float(report[3] / report[1]))
        return replace(super().agree(report[:3], context), past_rows=rows)

    def factorise(
        self, block: Block, weights: Array, kept: Kept, context: Context
    ) -> PrincipalBlock:
        """The task's rows and the past, in units of the ridge."""
        units = self.units(block, kept, context)
        pull = None
        if kept and (units.change is not None or context.discount != 1.0):
            before = 1.0 if units.change is None else units.change[:, None] ** 2
            pull = like(weights, (context.discount * before - 1.0) * units.size[:, None]) * weights
        probes = FEW if self.sparse else PROBES
        if not self.rank or not context.quadratic:  # then nobody asks what was lost
            probes = 0
        sub = PrincipalBlock(units, weights, pull, kept, context, self.seed, self.sparse, probes)
        if not self.rank:
            sub.ready(zeros(block, 0, block.shape[1]))
        return sub

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        new = dict(super().laid_out(kept, layout))
        if "principal" in kept:
            new["principal"] = layout.along(kept["principal"], 1)
        if "remainder" in kept:
            E = kept["remainder"]
            if layout.size > WIDEST_BLOCK and E.ndim == 2:  # too wide now for all of it
                E = np.diag(E)
            new["remainder"] = layout.along(E) if E.ndim == 1 else layout.both(E)
        return new | Probes.laid_out(kept, layout)

    def remember(
        self,
        block: Block,
        kept: Kept,
        context: Context,
        sub: PrincipalBlock,
        curvature: Array | None,
    ) -> Kept:
        """The merged directions, and what remains of the block's curvature beside them."""
        return self.settled(block, kept, context, sub.units.size) | sub.kept(curvature)
