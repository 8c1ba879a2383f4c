"""What the Conche method keeps and sends, counted: the same numbers as ``node_states`` and
``tasks_`` show after training (dense columns, one target, an intercept, scaled columns).

A stream's ridge is chosen among several strengths until two samples a column have been seen; until
then every vector is there once for each. All counts are those of the stream's last task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..common.arrays import Array
from ..network.cut import OVERSAMPLING
from ..network.principal import LEANS
from ..nodes.solvers.leaning import LEANING
from ..nodes.solvers.options import side_by_side
from ..nodes.solvers.principal_block import WIDEST_BLOCK
from ..nodes.solvers.probes import PROBES
from ..nodes.solvers.ridge import ENOUGH_TIMES, LEFT_OUT
from ..nodes.spread import ENOUGH

DOUBLE = 8  # bytes
SPREAD = 5  # numbers a column: count, mean, squared deviations, least and largest value


@dataclass(frozen=True)
class Stream:
    """Sizes of a stream, and of what is to be kept of it."""

    columns: Sequence[int]  # of every node
    n_samples: Array  # of every task
    rank: int
    apart: bool = False  # nodes in processes of their own

    @property
    def widths(self) -> list[int]:
        """Weights of every node: its columns, and on the first the intercept."""
        return [self.columns[0] + 1, *self.columns[1:]]

    @property
    def lossless(self) -> bool:
        """Whether there is room for all columns."""
        return sum(self.widths) <= self.rank

    @property
    def n(self) -> int:
        """Samples of the last task."""
        return int(self.n_samples[-1])

    @property
    def before(self) -> int:
        """Samples of all tasks before it."""
        return int(np.sum(self.n_samples[:-1]))

    @cached_property
    def side_by_side(self) -> int:
        """Strengths of the ridge that the last task is learnt with."""
        judged = self.before >= ENOUGH_TIMES * sum(self.widths)
        return 1 if judged or not self.rank else len(side_by_side(sum(self.widths), self.rank))

    # ---- kept ----

    def kept(self) -> list[int]:
        """Numbers that every node keeps after the last task."""
        S, few = self.side_by_side, self.before + self.n < ENOUGH
        shared = 0 if self.lossless else min(self.rank, self.before + self.n)
        cut = not self.lossless and self.before + self.n > self.rank
        each = []
        for own, width in zip(self.columns, self.widths, strict=True):
            numbers = width * S + width + (SPREAD + 2) * own  # weights, ridge, scales
            numbers += SPREAD * width if few else 0
            if self.lossless:
                numbers += width**2 if self.apart else 0  # the rotation
            if shared:
                numbers += shared * width + 2 * PROBES * width + width * S
            if cut:
                numbers += width if width > WIDEST_BLOCK else width**2
            each.append(numbers)
        return each

    def at_the_coordinator(self) -> int:
        """Numbers that the coordinator keeps: all columns' curvature, or nothing. A root of it,
        with a row for a sample, while columns of nodes that are apart may still change units."""
        P, N = sum(self.widths), self.before + self.n
        rows = min(N, P) if self.apart and N < ENOUGH else P
        return rows * P + P * self.side_by_side if self.lossless else 0

    # ---- sent ----

    def exchanges(self, rounds: int = 1) -> int:
        """How often all nodes are asked and waited for, in the last task."""
        if self.lossless:
            return 3 + self._turning
        if not self.rank:
            return 2 + rounds
        judged = 2 + (1 + 3 * LEANS) * self._leans if self.side_by_side > 1 else 0
        return 2 + self._merge()[1] + 2 * rounds + 6 + judged  # 6: what was lost

    def sent(self, rounds: int = 1) -> int:
        """Bytes of the last task, both ways, all nodes; ``rounds`` where memory is limited."""
        S, P, K = self.side_by_side, sum(self.widths), len(self.columns)
        if self.lossless:
            turned = sum(width**2 for width in self.widths) if self._turning else 0
            return DOUBLE * (self.n * P + P * S + turned)
        if not self.rank:
            return DOUBLE * K * rounds * (2 * self.n + 6)
        rows = self._rows
        m = min(self.rank, rows)
        each_round = 2 * rows * S + 7 * S + 2 * m * S
        lost = 2 * rows * PROBES + (PROBES + 3 + m) * S + 2 * m * PROBES * S + 2 * S + 2 * PROBES**2
        judged = (2 * m + 1) * min(LEFT_OUT, self.n) * S if S > 1 else 0
        if S > 1 and self._leans:  # directions each way, what they do to rows, and three numbers
            judged += LEANING * S * (m + LEANS * (2 * m + 2 * rows + 4))
        return DOUBLE * (self._merge()[0] + K * (rounds * each_round + lost + judged))

    @property
    def _leans(self) -> bool:
        """Whether what samples do to their own predictions is corrected for what was cut."""
        return self._rows > self.rank

    @property
    def _turning(self) -> bool:
        """Whether the columns' units are still open, and what is known must be turned with them."""
        return 0 < self.before < ENOUGH

    @property
    def _rows(self) -> int:
        """Directions so far, and the task's rows."""
        return min(self.rank, self.before) + self.n

    def _merge(self) -> tuple[int, int]:
        """Numbers that merging the directions sends, and in how many exchanges."""
        K, rows, rank = len(self.columns), self._rows, self.rank
        if rows <= rank:
            return K * rows**2, 1
        many, some = rows > 2 * rank, rank + OVERSAMPLING
        widest = some if many else rows
        narrow = [width for width in self.widths if width <= widest]
        wide = K - len(narrow)
        numbers = (rows + rank) * sum(narrow) + K * self.side_by_side * rank**2
        asked = bool(narrow) + 2  # shown; told, and what they have in common
        if wide and many:
            numbers += wide * (4 * rows * some + (some + 1) * some + rows * rank)
            asked += 3
        elif wide:
            numbers += wide * (rows**2 + rows * rank)
            asked += 1
        return numbers, asked
