"""Conjugate gradients on the same messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.arrays import Array, column_dots, ratio
from ...nodes.scalars import Scalars
from .base import CentralSteps, Move, Point, Problem, Standing, measure


@dataclass(frozen=True)
class Direction:
    """The last direction q, seen through A and through the penalty P."""

    g: Array
    step: Array
    Aq: Array
    rz: Array
    qPq: Array
    dPq: Array
    radau: Array | None = None  # twice the gap is at most this times r.z


class ConjugateGradients(CentralSteps[Direction | None]):
    """z is the preconditioned residual r = A^T g - P d, seen through A.

    Polak-Ribiere's momentum with restarts covers inexact local solves and, with the line search,
    losses that are not quadratic.
    """

    def move(
        self, problem: Problem, now: Standing[Direction | None], Az: Array, scalars: Scalars
    ) -> Move:
        point = now.point
        zPz, dPz, rz, done = measure(point, Az, scalars, now.done)
        momentum, Aq, qPq, dPq = np.zeros_like(rz), Az, zPz, dPz
        if now.last is not None:
            qPz = np.zeros_like(rz) + scalars.products()[1]
            old = column_dots(now.last.g, Az) - (dPz - now.last.step * qPz)  # r_last.z
            momentum = np.maximum(0.0, ratio(rz - old, now.last.rz))
            Aq = Az + momentum.astype(Az.dtype) * now.last.Aq
            qPq = zPz + 2 * momentum * qPz + momentum**2 * now.last.qPq
            dPq = dPz + momentum * (now.last.dPq + now.last.step * now.last.qPq)
            uphill = column_dots(point.g, Aq) - dPq <= 0  # rounding has won: start from z alone
            if np.any(uphill):
                momentum = np.where(uphill, 0.0, momentum)
                Aq = np.where(uphill, Az, Aq)
                qPq, dPq = np.where(uphill, zPz, qPq), np.where(uphill, dPz, dPq)
        step = problem.objective.best_step(point.v, point.g, Aq, qPq, dPq)
        step, momentum = np.where(done, 0.0, step), np.where(done, 0.0, momentum)
        radau = _radau(now.last, momentum, scalars.eigenvalue(), problem)
        last = Direction(point.g, step, Aq, rz, qPq, dPq, radau)
        floor = None if radau is None else point.total - 0.5 * radau * rz
        return Move(*_moved(point, last), step, momentum, last, done, floor)


def _moved(point: Point, along: Direction) -> tuple[Array, Array | float]:
    """Predictions and penalty after the step."""
    v = point.v + along.step.astype(along.Aq.dtype) * along.Aq
    return v, point.penalty + along.step * along.dPq + 0.5 * along.step**2 * along.qPq


def _radau(
    last: Direction | None, momentum: Array, least: Array | None, problem: Problem
) -> Array | None:
    """Gauss and Radau's quadrature: e.T e <= radau r.z for the error e of conjugate gradients on a
    quadratic with curvature T, from their own steps and the ``least`` eigenvalue (Golub and
    Meurant). It starts at 1 / least, which holds for any step, and soon is nearly exact."""
    if least is None or not problem.objective.loss.quadratic:
        return None
    first = 1 / least
    if last is None or last.radau is None:
        return np.asarray(first)
    ahead = last.radau - last.step
    goes_on = (ahead > 0) & (momentum > 0)
    next_one = ahead / np.where(goes_on, least * ahead + momentum, 1.0)
    return np.where(goes_on, np.minimum(next_one, first), first)
