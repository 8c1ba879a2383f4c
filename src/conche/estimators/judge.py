"""Penalties that choose themselves: models side by side, judged by tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..common.arrays import Array
from ..common.outputs import Outputs
from ..network import Lost
from ..nodes.solvers import Context
from .gap import Account

TIED = 1e-6  # relative: of scores
FEWEST = 4  # rows that tell likely from unlikely
CLEAN = 1e-9  # relative: of squares, below which they are rounding
FLAT = 0.1  # weight of a prior


@dataclass(frozen=True)
class Judge:
    """Which strength of the penalty is the model's: the one with the least error so far.

    Errors are those that every strength has made on each task before it learnt it. Where nothing
    has been lost yet, the rows themselves say which is the likeliest (`likeliest`). One strength
    alone always wins.
    """

    strengths: tuple[float, ...]
    n_outputs: int
    scores: tuple[float, ...]
    evident: int | None = None  # the place of the likeliest, where rows say so

    @classmethod
    def of(cls, strengths: tuple[float, ...], n_outputs: int) -> Judge:
        """Before the first task."""
        return cls(strengths, n_outputs, (0.0,) * len(strengths))

    def going_on(self, outputs: Outputs | None) -> tuple[Judge, Outputs | None]:
        """For the next task, with other outputs of the model where there are some; and what that
        makes of the nodes'."""
        if outputs is None:
            return self, None
        blocks = list(range(len(self.strengths)))
        new = replace(self, n_outputs=len(outputs.places))
        return new, outputs.in_blocks(blocks, self.n_outputs)

    def side_by_side(self, Y: Array) -> Array:
        """The targets, once for every strength."""
        return np.tile(Y, (1, len(self.strengths))) if len(self.strengths) > 1 else Y

    def having_seen(self, tested: Array, evident: int | None = None) -> Judge:
        """After a task: ``tested`` is the mean loss from before it was learnt, per output;
        ``evident`` the place of the likeliest strength, where that is known."""
        if len(self.strengths) == 1:
            return self
        # a strength that has overflowed has lost, and must not spoil the others' sums
        new = np.nan_to_num(tested, nan=1e300, posinf=1e300).reshape(len(self.strengths), -1)
        scores = np.array(self.scores) + new.sum(axis=1)
        return replace(self, scores=tuple(scores.tolist()), evident=evident)

    @cached_property
    def winner(self) -> int:
        """The place of the best strength; ties go to the first, the default. Scores that differ by
        less than anybody would notice are tied: rounding must not choose."""
        if self.evident is not None:
            return self.evident
        scores = np.array(self.scores)
        return int(np.flatnonzero(scores <= scores.min() * (1 + TIED))[0])

    @property
    def strength(self) -> float:
        """The best strength."""
        return self.strengths[self.winner]

    @property
    def outputs(self) -> slice:
        """Which of the nodes' outputs are the model's."""
        return slice(self.winner * self.n_outputs, (self.winner + 1) * self.n_outputs)


def likeliest(account: Account | None, lost: Lost | None, context: Context) -> int | None:
    """The place of the ridge s for which targets are likeliest (restricted maximum likelihood),
    where the network knows the volume of all rows B.

    With weights of the noise's variance over s, the log likelihood of n targets about their mean is
    minus half of log det (I + B B^T / s) + (n - 1) log y^T (I + B B^T / s)^-1 y, up to a constant.
    The quadratic form is twice the objective, less what an intercept's ridge, which should be none,
    has added.
    """
    rows, s = context.past_rows + context.n_samples - context.intercept, np.array(context.each)
    if account is None or lost is None or lost.volume is None or len(s) == 1 or rows < FEWEST:
        return None
    squares, constant = (
        x.reshape(len(s), -1).sum(axis=1)
        for x in (2 * account.objective, account.strength * lost.constant)
    )
    least = np.maximum(squares - constant, CLEAN * np.max(squares, initial=1e-300))
    share = context.n_columns / (context.n_columns + s)  # of the columns that are free, about
    flat = FLAT * np.log(share * (1 - share))  # decides where nothing else does
    volume = lost.volume + context.intercept * np.log(s)
    return int(np.argmin(volume + rows * np.log(least) - flat))
