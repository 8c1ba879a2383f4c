"""What logistic tasks leave behind where classes arrive later.

All outputs share one memory, and its curvature is the (geometric) mean of theirs. A class that is
still to come will start from the output for "the class that has not appeared yet", whose
predictions are far on the right side: seen from there the past is far less stiff than from the
classes that it is about. Kept as stiff as those want it, it would leave the new class little room.
So that output has a share in the mean wherever classes are known to be coming. And where they come
as a surprise, after tasks that were kept without it, the past fades once, to what it would weigh
had it been kept with that output alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Array
from ..rounds import Loss
from .judge import Judge
from .labels import Labels


class Stiffness(NamedTuple):
    """Curvature summed over all samples so far: as it was kept, and of the output for the class
    that has not appeared yet."""

    kept: float = 0.0
    unseen: float = 0.0

    def after(self, loss: Loss, v: Array, share: Array, weights: Array | None) -> Stiffness:
        """With a task's predictions ``v``, which was kept with each output's ``share``."""
        w = np.ones(len(v)) if weights is None else weights
        last = np.zeros(len(share))
        last[-1] = 1.0
        kept, unseen = (loss.past_curvature(v, s) for s in (share, last))
        if kept is None or unseen is None:  # of squares there is nothing to choose
            return self
        return Stiffness(self.kept + float(w @ kept), self.unseen + float(w @ unseen))

    def fading(self, before: Labels | None, now: Labels | None) -> float:
        """The weight of the past in a task whose labels make those of ``before`` to ``now``."""
        surprised = before is not None and now is not None and now.grown > before.grown
        return self.unseen / self.kept if surprised and self.kept > 0 else 1.0


def shares(labels: Labels, judge: Judge) -> Array:
    """Of each of the nodes' outputs in the curvature that a task is kept with."""
    coming = labels.coming
    known = labels.n_outputs - 1
    own = np.append(np.full(known, (1 - coming) / max(known, 1)), coming if known else 1.0)
    return np.tile(own, len(judge.strengths)) / len(judge.strengths)
