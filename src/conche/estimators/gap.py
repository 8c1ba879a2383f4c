"""How far memory is from the offline solution: a bound, and an estimate.

With E = H - V^T V what was cut of the past's curvature H, a task that moves the weights by d leaves
a gradient of the *offline* objective behind: E d, less its part within the blocks. H is at least
E = F^T F and at least V'^T V'; so, in units of the ridge, after tasks 1..t

    offline objective - its minimum  <=  1/2 ( sum_t |F d_t| + |b| + sum_t sqrt(2 c_t) )^2,
    |F d| <= sum_k |F_k d_k|  and  <= sqrt(Delta) |d|,    |b|^2 = b.(V'^T V' + s)^-1 b,

Delta the sum of all norms that were cut, b the sum of E_kk d_k over all tasks, c_t what the rounds
of task t left at most, s the strength of the ridge. For the estimate the nodes keep H o for some
random directions o exactly. So o.g is known, and its mean square is |g|^2; what (H + R)^-1 makes of
it is taken from the directions E o, which lie where g does; if the random directions alone show
more, that is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..common.outputs import Outputs
from ..network import Lost


@dataclass(frozen=True)
class OfflineGap:
    """How far the ridge objective of all rows is above its minimum."""

    bound: float  #: at most, as a share of the objective
    estimate: float  #: the same, as it is estimated
    error: float  #: of the estimate: one standard error
    objective: float  #: at the estimate: half the squared errors, and the penalty
    rounds: float = 0.0  #: the share that more rounds would have saved; the rest is the rank's

    def shares(self) -> OfflineGap:
        """Numbers in the unit of the objective, as shares of it."""
        whole = self.objective or 1.0
        parts = (self.bound, self.estimate, self.error, self.rounds)
        bound, estimate, error, rounds = (part / whole for part in parts)
        return OfflineGap(bound, estimate, error, self.objective, rounds)


@dataclass(frozen=True)
class Account:
    """What the stream has lost so far; arrays have one number per output, of all strengths."""

    strength: Array
    residue: Array  # sum of the roots of what rounds left
    objective: Array
    whole: Array  # root of u.(H + R)^-1 u at most, u the sum of E d over all tasks
    owed: Array  # b.(H + R)^-1 b at most, b the sum of E_kk d
    cut: float = 0.0  # Delta
    probed: Array | None = None  # o.g for the random directions o: probes x outputs
    ease: Array | None = None  # x.(H + R)^-1 x over x.x, per output
    within: Array | None = None  # g.(H + R)^-1 g as far as the random directions see it, per output
    blind: bool = False  # whether something was lost that nobody has counted

    @classmethod
    def of(cls, strengths: tuple[float, ...], n_outputs: int) -> Account:
        """Before the first task."""
        zeros = np.zeros(len(strengths) * n_outputs)
        return cls(np.repeat(strengths, n_outputs), zeros, zeros, zeros, zeros)

    def only(self, outputs: Outputs) -> Account:
        """Of some outputs alone."""

        def among(array: Array | None) -> Any:
            return None if array is None else outputs.among(array)

        return replace(
            self,
            strength=outputs.among(self.strength),
            residue=outputs.among(self.residue),
            objective=outputs.among(self.objective),
            whole=outputs.among(self.whole),
            owed=outputs.among(self.owed),
            probed=None if self.probed is None else outputs.of(self.probed),
            ease=among(self.ease),
            within=among(self.within),
        )

    def after(self, lost: Lost | None, left: Array, objective: Array, discount: float) -> Account:
        """After a task whose rounds left so much of its ``objective``."""
        if lost is not None and (lost.whole or lost.blind):
            left = np.sqrt(np.maximum(left, 0.0))
            return replace(self, residue=left, objective=objective, blind=lost.blind)
        residue = self.residue + np.sqrt(np.maximum(left, 0.0))
        account = replace(self, residue=residue, objective=discount * self.objective + objective)
        if lost is None:
            return replace(account, blind=True)
        now = discount * lost.growth * self.cut
        step = np.minimum(np.sqrt(now * lost.moved), lost.spread)
        whole = np.sqrt(discount) * self.whole + step
        owed = np.broadcast_to(lost.owed, whole.shape)
        account = replace(account, whole=whole, owed=owed, cut=now + lost.cut)
        if lost.probed is None:
            return account
        before = 0.0 if self.probed is None else discount * self.probed
        each = np.repeat(lost.ease, len(residue) // np.size(lost.ease))
        probed = before + lost.probed
        curved, plain = lost.pairs
        within = np.array(
            [
                max(float(u @ np.linalg.lstsq(curved + s * plain, u, rcond=1e-12)[0]), 0.0)
                for u, s in zip(probed.T, self.strength, strict=True)
            ]
        )
        return replace(account, probed=probed, ease=each, within=within)

    def gap(self, outputs: Array) -> OfflineGap:
        """Of the outputs that are the model's."""
        objective = float(np.sum(self.objective[outputs]))
        rounds = float(np.sum(self.residue[outputs] ** 2))
        if self.blind:
            return OfflineGap(np.inf, np.inf, np.inf, objective, rounds).shares()
        shed = self.whole[outputs] + np.sqrt(self.owed[outputs])
        roots = shed / np.sqrt(2) + self.residue[outputs]
        bound = float(np.sum(roots**2))
        if self.probed is None or self.ease is None or self.within is None:
            return OfflineGap(bound, min(rounds, bound), 0.0, objective, rounds).shares()
        squares = np.mean(self.probed[:, outputs] ** 2, axis=0)
        most = np.maximum(self.ease[outputs] * squares, self.within[outputs])
        lost = 0.5 * float(np.sum(most))
        spread = float(np.sqrt(2 / len(self.probed)))
        estimate = min(lost + rounds, bound)
        return OfflineGap(bound, estimate, lost * spread, objective, rounds).shares()
