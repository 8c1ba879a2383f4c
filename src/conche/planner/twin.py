"""What a limited rank costs, from a small twin of the stream: drawn, learnt, measured.

Sizes in proportion (columns, samples, rank and ridge) lose in proportion: random matrices average
themselves out. So a stream of any size has a twin of `COLUMNS` columns, with the same spectrum, as
many nodes (at most one a column) and tasks (of at most `TASKS`; beyond, larger ones). It is learnt
with every rank of a grid and without any loss, several times, on the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..common.arrays import Array, even_sizes
from ..network.cut import SHORTENING
from ..nodes.solvers.principal_block import WIDEST_BLOCK

COLUMNS, TASKS, DRAWS = 32, 6, 8
MOST_ROWS = 20  # to a column: with more, next to nothing is lost
SHARES = np.array([0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])  # of the columns


@dataclass(frozen=True)
class Shape:
    """A stream in numbers: N samples in all, and inner products of its unknowns."""

    n_features: int
    n_tasks: int
    n_samples: float  # of a task
    n_nodes: int
    damping: float
    noise_var: float
    energy: float = 1.0
    common: float = 1.0  # of the energy, in all tasks
    drift: float = 0.0  # squared length of a step of all unknowns, from task to task
    spectrum: Array | None = None  # eigenvalues of the columns' covariance; None: all are 1


class Losses(NamedTuple):
    """The relative rise of the error over all tasks, for every rank in `SHARES` of the columns."""

    mean: Array
    stderr: Array

    def at(self, share: float) -> float:
        """Of a rank that is not on the grid, between those that are."""
        return max(float(np.interp(share, SHARES, self.mean)), 0.0)

    def smallest(self, limit: float) -> float:
        """The smallest rank, as a share of the columns, that loses no more than ``limit``; by a
        standard error, because it is drawn."""
        return float(SHARES[int(np.argmax(self.mean + self.stderr <= limit))])


def losses(shape: Shape, seed: int = 0) -> Losses:
    """Draw the twin, learn it with every rank, and compare."""
    p = min(COLUMNS, shape.n_features)
    T = min(TASKS, shape.n_tasks)
    scale = p / shape.n_features
    n = int(np.clip(round(shape.n_samples * scale * shape.n_tasks / T), 1, MOST_ROWS * p))
    wide = shape.n_features / shape.n_nodes > WIDEST_BLOCK  # then diagonals alone are kept
    sizes = even_sizes(p, p if wide else min(shape.n_nodes, p))
    rng = np.random.default_rng(seed)
    W = _unknowns(shape, T, p, rng)
    root = _root(shape, p, rng)
    ranks = np.round(SHARES * p).astype(int)
    learnt = _Learning(ranks, sizes, max(shape.damping * scale, 1e-9), DRAWS)
    for t in range(T):
        A = rng.standard_normal((DRAWS, n, p)) @ root
        noise = shape.noise_var**0.5 * rng.standard_normal((DRAWS, n))
        learnt.task(A, np.einsum("dnp,dp->dn", A, W[:, t]) + noise)
    off = (learnt.w[:, :, None, :] - W[:, None]) @ root.T  # draws x ranks x tasks x columns
    errors = np.mean(np.sum(off**2, axis=-1), axis=2) + shape.noise_var
    rise = (errors - errors[:, -1:]) / max(float(np.mean(errors[:, -1])), 1e-300)
    return Losses(rise.mean(axis=0), rise.std(axis=0, ddof=1) / DRAWS**0.5)


class _Learning:
    """One estimate for every draw and rank: d solves (A^T A + past + lambda) d = A^T (y - A w)."""

    def __init__(self, ranks: Array, sizes: list[int], damping: float, draws: int):
        p, batch = sum(sizes), (draws, len(ranks))
        self.ranks, self.damping = ranks, damping
        node = np.repeat(np.arange(len(sizes)), sizes)
        self.same = node[:, None] == node  # entries of diagonal blocks
        self.w = np.zeros((*batch, p))
        self.past = np.zeros((*batch, p, p))  # V^T V
        self.rest = np.zeros((*batch, p, p))  # blockdiag(E_k)

    def task(self, A: Array, y: Array) -> None:
        """Learn it, then keep what there is room for."""
        p = A.shape[-1]
        now = np.einsum("dni,dnj->dij", A, A)[:, None]
        off = y[:, None] - np.einsum("dnp,drp->drn", A, self.w)
        right = np.einsum("dnp,drn->drp", A, off)
        whole = now + self.past + self.rest + self.damping * np.eye(p)
        self.w = self.w + np.linalg.solve(whole, right[..., None])[..., 0]
        stacked = now + self.past
        squares, U = np.linalg.eigh(stacked[:, :-1])  # the last rank has room for all
        for r, rank in enumerate(self.ranks[:-1]):
            cut = squares[:, r, : p - rank]
            level = SHORTENING * np.maximum(cut, 0).sum(axis=-1, keepdims=True)
            level /= max(p - rank, 1)
            left = np.maximum(squares[:, r, p - rank :] - level, 0.0)
            best = U[:, r, :, p - rank :]
            self.past[:, r] = (best * left[:, None]) @ np.swapaxes(best, -1, -2)
        self.past[:, -1] = stacked[:, -1]
        self.rest += np.where(self.same, stacked - self.past, 0.0)


def _unknowns(shape: Shape, T: int, p: int, rng: np.random.Generator) -> Array:
    """Draws x tasks x columns; every unknown has its share of what tasks have in common."""
    own = max(shape.energy - shape.common, 0.0)
    common = rng.standard_normal((DRAWS, 1, p)) * (shape.common / p) ** 0.5
    each = rng.standard_normal((DRAWS, T, p)) * (own / p) ** 0.5
    step = (shape.drift * shape.n_tasks / T / p) ** 0.5
    walk = np.cumsum(rng.standard_normal((DRAWS, T, p)), axis=1) * step
    return np.asarray(common + each + walk)


def _root(shape: Shape, p: int, rng: np.random.Generator) -> Array:
    """R with R^T R a covariance of this spectrum, whose eigenvectors know nothing of nodes."""
    if shape.spectrum is None:
        return np.eye(p)
    places = (np.arange(p) + 0.5) / p * len(shape.spectrum) - 0.5
    values = np.interp(places, np.arange(len(shape.spectrum)), np.sort(shape.spectrum))
    values *= p / max(float(values.sum()), 1e-300)
    Q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * Q.T)
