"""Damping and discounts that choose themselves: models side by side, and tasks are their judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..common.arrays import Array
from ..common.outputs import Outputs
from ..nodes.solvers.ridge import BETTER

TIED = 1e-6  # relative: of scores
SURE = 1.5  # standard errors by which a discount must have been better than none


@dataclass(frozen=True)
class Judge:
    """Which strength of the damping is the model's: the one that has predicted best so far.

    Errors are those that every strength makes on samples that are left out (memory), or made on
    the tasks as they came in, before it learnt them. One strength alone always wins.

    Where there are about as many samples as columns, a weak ridge may be far off in a few
    directions that the samples left out happen not to show. So one that is weaker than the first,
    the default, must be surely better than it.
    """

    strengths: tuple[float, ...]
    n_outputs: int
    scores: tuple[float, ...]
    squares: tuple[float, ...]  # sums over samples of (loss - loss with the first strength)^2
    seen: int = 0  # samples
    enough: float = np.inf  # samples after which the winner goes on alone

    @classmethod
    def of(cls, strengths: tuple[float, ...], n_outputs: int, enough: float = np.inf) -> Judge:
        """Before the first task."""
        nothing = (0.0,) * len(strengths)
        return cls(strengths, n_outputs, nothing, nothing, 0, enough)

    def going_on(self, outputs: Outputs | None) -> tuple[Judge, Outputs | None]:
        """For the next task: the winner alone, once enough has been seen; with other outputs of the
        model, where there are some. Also what that makes of the nodes' outputs, if anything."""
        settled = len(self.strengths) > 1 and self.seen >= self.enough
        if not settled and outputs is None:
            return self, None
        own = Outputs.same(self.n_outputs) if outputs is None else outputs
        blocks = [self.winner] if settled else list(range(len(self.strengths)))
        new = replace(
            self,
            strengths=tuple(self.strengths[block] for block in blocks),
            scores=tuple(self.scores[block] for block in blocks),
            squares=tuple(self.squares[block] for block in blocks),
            n_outputs=len(own.places),
        )
        return new, own.in_blocks(blocks, self.n_outputs)

    def side_by_side(self, Y: Array) -> Array:
        """The targets, once for every strength."""
        return np.tile(Y, (1, len(self.strengths))) if len(self.strengths) > 1 else Y

    def having_seen(self, tested: Array, left_out: Array | None, samples: float) -> Judge:
        """After a task: ``tested`` is the mean loss from before it was learnt, per output;
        ``left_out``, where it is known, that of samples that were left out, strengths x samples."""
        if len(self.strengths) == 1:
            return self
        each = tested if left_out is None else left_out
        # a strength that has overflowed has lost, and must not spoil the others' sums
        new = np.nan_to_num(each, nan=1e300, posinf=1e300).reshape(len(self.strengths), -1)
        scores = tuple((np.array(self.scores) + new.sum(axis=1)).tolist())
        squares = self.squares
        if left_out is not None:
            apart = np.minimum(np.abs(new - new[0]), 1e150)
            squares = tuple((np.array(squares) + np.sum(apart**2, axis=1)).tolist())
        return replace(self, scores=scores, squares=squares, seen=self.seen + round(samples))

    @cached_property
    def winner(self) -> int:
        """The place of the best strength; ties go to the first, the default. Scores that differ by
        less than anybody would notice are tied: rounding must not choose."""
        if len(self.scores) == 1:
            return 0
        scores, strengths = np.array(self.scores), np.array(self.strengths)
        gain = scores[0] - scores
        luck = BETTER * np.sqrt(self.squares) * (1 + TIED)  # of one sample, it is the gain itself
        unsure = (strengths < strengths[0]) & (gain <= luck)
        scores = np.where(unsure, np.inf, scores)
        return int(np.flatnonzero(scores <= scores.min() * (1 + TIED))[0])

    @property
    def strength(self) -> float:
        """The best strength."""
        return self.strengths[self.winner]

    @property
    def outputs(self) -> slice:
        """Which of the nodes' outputs are the model's."""
        return slice(self.winner * self.n_outputs, (self.winner + 1) * self.n_outputs)


class Evidence(NamedTuple):
    """What a path has gained on the one that never forgets: sums over tasks of the gain and of its
    square, in the unit of the loss."""

    gain: float = 0.0
    squares: float = 0.0

    def after(self, gain: float) -> Evidence:
        """With one more task."""
        return Evidence(self.gain + gain, self.squares + gain**2)

    @property
    def sure(self) -> bool:
        """Whether it is more than luck: gains that only vary add up to the root of the squares."""
        return self.gain > SURE * self.squares**0.5
