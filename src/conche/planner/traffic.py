"""What the Conche method keeps and sends, counted: the same numbers as ``node_states`` and
``tasks_`` show after training (dense columns, one target, an intercept, scaled columns).

Where memory is limited, every vector is there once for each of the ridge's strengths. All counts
are those of the stream's last task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.arrays import Array
from ..memory.sums import ROOT_SHARE
from ..network.cut import OVERSAMPLING
from ..nodes.solvers.principal import STRENGTHS
from ..nodes.solvers.principal_block import WIDEST_BLOCK
from ..nodes.solvers.probes import PROBES
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
        """Whether there is room for all columns: then sums are kept of them."""
        return sum(self.columns) <= self.rank

    @property
    def n(self) -> int:
        """Samples of the last task."""
        return int(self.n_samples[-1])

    @property
    def before(self) -> int:
        """Samples of all tasks before it."""
        return int(np.sum(self.n_samples[:-1]))

    @property
    def side_by_side(self) -> int:
        """Strengths of the ridge that are learnt."""
        return len(STRENGTHS) if self.rank and not self.lossless else 1

    # ---- kept ----

    def kept(self) -> list[int]:
        """Numbers that every node keeps after the last task. Of lossless memory none: the sums are
        with the coordinator."""
        if self.lossless:
            return [0] * len(self.columns)
        S, few = self.side_by_side, self.before + self.n < ENOUGH
        shared = min(self.rank, self.before + self.n)
        cut = self.before + self.n > self.rank
        each = []
        for own, width in zip(self.columns, self.widths, strict=True):
            numbers = width * S + width + (SPREAD + 2) * own  # weights, ridge, scales
            numbers += SPREAD * width if few else 0
            if shared:
                numbers += shared * width + 2 * PROBES * width + width * S
            if cut:
                numbers += width if width > WIDEST_BLOCK else width**2
            each.append(numbers)
        return each

    def at_the_coordinator(self) -> int:
        """Numbers that the coordinator keeps: sums of all columns, a triangle of them; or nothing.
        While rows are few, those themselves, and one a task for how far its mean was off."""
        if not self.lossless:
            return 0
        p, held = sum(self.columns), 0
        for n in self.n_samples:
            held += int(n) + bool(held)
            if ROOT_SHARE * held > p:
                return p * (p + 1) // 2 + p + 2 * (p + 1)
        return held * (p + 1) + p + 2 * (p + 1)

    # ---- sent ----

    def exchanges(self, rounds: int = 1) -> int:
        """How often all nodes are asked and waited for, in the last task."""
        if self.lossless:
            return 3
        if not self.rank:
            return 2 + rounds
        return 2 + self._merge()[1] + 2 * rounds + 6  # 6: what was lost

    def sent(self, rounds: int = 1) -> int:
        """Bytes of the last task, both ways, all nodes; ``rounds`` where memory is limited."""
        S, K = self.side_by_side, len(self.columns)
        if self.lossless:
            return DOUBLE * self.n * sum(self.columns)
        if not self.rank:
            return DOUBLE * K * rounds * (2 * self.n + 6)
        rows = self._rows
        m = min(self.rank, rows)
        each_round = 2 * rows * S + 7 * S + 2 * m * S
        lost = 2 * rows * PROBES + (PROBES + 4 + m) * S + 2 * m * PROBES * S + 2 * S + 2 * PROBES**2
        return DOUBLE * (self._merge()[0] + K * (rounds * each_round + lost))

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
