"""The same proposals as Algorithm 1's, with as large a step as the data allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.arrays import Array
from ...nodes.scalars import Scalars
from .base import CentralSteps, Move, Problem, Standing, measure


@dataclass(frozen=True)
class Stride:
    """The last adaptive step, and the one that would have been best along its direction."""

    number: int
    step: Array
    best: Array
    rz: Array


class Adaptive(CentralSteps[Stride | None]):
    """The step that is best along z follows from what the coordinator has.

    Taken always, it zigzags: after two of them the next two have Dai and Yuan's length, which would
    end a problem of two directions, never more than what keeps the objective falling. Every round
    lowers the objective.
    """

    def move(
        self, problem: Problem, now: Standing[Stride | None], Az: Array, scalars: Scalars
    ) -> Move:
        objective, point = problem.objective, now.point
        zPz, dPz, rz, done = measure(point, Az, scalars, now.done)
        best = objective.best_step(point.v, point.g, Az, zPz, dPz)
        step, number = best, 0
        if now.last is not None:
            number = now.last.number + 1
            if number % 4 == 2:
                step = _dai_yuan(best, rz, now.last)
            elif number % 4 == 3:
                step = now.last.step
            if number % 4 >= 2:
                step = np.minimum(step, 1.9 * best if objective.loss.quadratic else best)
        step = np.where(done, 0.0, step)
        v = point.v + step.astype(Az.dtype) * Az
        penalty = point.penalty + step * dPz + 0.5 * step**2 * zPz
        return Move(v, penalty, step, None, Stride(number, step, best, rz), done)


def _dai_yuan(best: Array, rz: Array, last: Stride) -> Array:
    """The step from two best ones, in the metric of the preconditioner (r.z for |g|^2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = 1 / best, 1 / last.best
        step = 2 / (np.sqrt((b - a) ** 2 + 4 * rz / (last.step**2 * last.rz)) + a + b)
    return np.where(np.isfinite(step) & (step > 0), step, best)
