"""An elastic net on rows that are all in one place, to the last digits.

    min_x  1/2 |t - S x|^2 + l1 |x|_1 + l2/2 |x|^2,     a free column's weight is not penalised.

Coordinate descent (scikit-learn's) on a working set finds out which weights are zero and what signs
the others have; where that is settled, Newton's method on the others ends it: with signs fixed the
problem is quadratic. Where columns are so alike that coordinate descent is slow, Newton's steps are
taken all the same, as far as they lower the objective; where weights are so many, and entries so
few, that passes are cheaper, they are not taken at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ...common.arrays import Array, Block, as_dense, small_indices
from ...common.threads import blas_threads

FEW_ENTRIES = 0.05  # of all: columns that are kept as what they have
FEWEST = 64  # columns that a working set begins with
SPARSE_SHARE = 8  # one of so many columns that want a weight, where passes over them cost little
PASSES = 20  # of coordinate descent at first; eight times as many where they were not enough
MOST_PASSES = 5000
TIMES = 4  # that all stages are gone through, at most
SETTLED = 1e-6  # of l1: a gradient that is off by no more is no reason to go through them again
SETS = 60  # working sets, at most
EXACT = 1e-12  # of l1: a pull that much above it is rounding
TALL = 2  # rows for every column of a set, whose inner products are then worth finding
WORTH_PASSES = 100  # operations of passes that one of Newton's takes the place of
STAGE = 0.3  # of a penalty, the next weaker one
TRIED = 0.5 ** np.arange(4)  # steps towards Newton's
LEAST_RIDGE = 1e-11  # of mean squared columns: an L2 part that decides what else is left open
MOST_DROPPED = 100  # times that weights become zero on the way of one of them


class Penalty(NamedTuple):
    """Of the weights: one number for all outputs, or one for each."""

    l1: Any
    l2: Any

    @classmethod
    def like_theirs(cls, strength: Any, l1_ratio: float) -> Penalty:
        """scikit-learn's, times the number of samples."""
        return cls(strength * l1_ratio, strength * (1 - l1_ratio))

    def one(self, j: int, outputs: int) -> Penalty:
        """Of one output."""
        return Penalty(*(float(np.broadcast_to(part, outputs)[j]) for part in self))

    def of(self, x: Array) -> Array:
        """Per output; without a free column."""
        return self.l1 * np.sum(np.abs(x), axis=0) + 0.5 * self.l2 * np.sum(x**2, axis=0)


class Columns:
    """Columns, and the inner products of those that have been asked for: each is found once.

    ``one`` is the constant column, where an intercept takes its part of whatever the others do:
    then all are meant without their projection on it, and no copy of them is made for that.
    """

    def __init__(self, S: Block, one: Array | None = None):
        self.S = small_indices(S) if sparse.issparse(S) else S
        self.one = None if one is None else one / np.linalg.norm(one)
        self.places = np.full(S.shape[1], -1)
        nothing = np.zeros((S.shape[0], 0))
        self.own = sparse.csc_array(nothing) if self.sparse else nothing  # those, in double
        self.G = np.zeros((0, 0))
        self.rounding = 32 * float(np.finfo(S.dtype).eps)  # of pulls

    @classmethod
    def by_entries(cls, S: Array, one: Array | None = None) -> Columns:
        """Of an array that may have few entries: then they are kept as what they have."""
        few = one is None and np.count_nonzero(S) < FEW_ENTRIES * S.size
        return cls(sparse.csc_array(S) if few else S, one)

    @property
    def sparse(self) -> bool:
        """Whether they are kept as what they have, and used so."""
        return sparse.issparse(self.S) and self.one is None

    def some(self, which: Array) -> Block:
        """Some of them, in double."""
        if self.sparse:
            return self.S[:, which].astype(float, copy=False)
        places = self.places[which]
        if np.all(places >= 0):
            return self.own[:, places]
        own = np.asarray(as_dense(self.S[:, which]), dtype=float, order="F")
        return own if self.one is None else own - np.outer(self.one, self.one @ own)

    def times(self, x: Array) -> Array:
        """What the weights x predict."""
        kept = np.flatnonzero(x)
        if np.all(self.places[kept] >= 0):
            return np.asarray(self.own[:, self.places[kept]] @ x[kept])
        return self.level(np.asarray(self.S @ x.astype(self.S.dtype), dtype=float))

    def turned(self, rest: Array) -> Array:
        """Their inner products with what is left of the targets."""
        rest = self.level(rest).astype(self.S.dtype)
        return np.asarray(self.S.T @ rest, dtype=float)

    def level(self, v: Array) -> Array:
        """Without what the constant column says of it."""
        return v if self.one is None else v - self.one * (self.one @ v)

    def products(self, which: Array) -> Array:
        """All inner products of some of them."""
        new = which[self.places[which] < 0]
        if len(new):
            more = self.some(new)
            beside, within = as_dense(self.own.T @ more), as_dense(more.T @ more)
            self.places[new] = self.own.shape[1] + np.arange(len(new))
            self.own = _beside(self.own, more)
            self.G = np.block([[self.G, beside], [beside.T, within]])
        places = self.places[which]
        return self.G[np.ix_(places, places)]


def _beside(first: Block, second: Block) -> Block:
    """Both, by columns."""
    if sparse.issparse(second):
        return sparse.hstack([first, second], "csc")
    return np.vstack([first.T, second.T]).T


def elastic_net(S: Array, t: Array, x: Array, penalty: Penalty, free: int | None = None) -> Array:
    """The best weights, one column of x, t and the answer per output; x is where to begin."""
    one = None if free is None else S[:, free]
    columns, best = Columns.by_entries(S, one), np.zeros_like(x)
    start = x.copy()
    if free is not None:  # its best value follows the others': what is centred need not ask for it
        start[free] = 0.0
    for j in range(x.shape[1]):
        own = penalty.one(j, x.shape[1])
        best[:, j] = solve(columns, columns.level(t[:, j]), start[:, j], own)
    if one is not None:
        best[free] = one @ (t - S @ best) / (one @ one)
    return best


def solve(columns: Columns, t: Array, x: Array, penalty: Penalty) -> Array:
    """The best weights, begun with x. Where about as many columns as rows have a weight, and there
    is no L2 part, the stages may end before the optimum: then they are repeated from there."""
    start, rest = x, t - columns.times(x)
    before = 0.5 * rest @ rest + float(penalty.of(x))
    for _ in range(TIMES):
        x = _by_stages(columns, t, x, penalty)
        rest = t - columns.times(x)
        if _off(columns, rest, x, penalty) <= SETTLED * penalty.l1:
            break
    return x if 0.5 * rest @ rest + float(penalty.of(x)) <= before else start


def _by_stages(columns: Columns, t: Array, x: Array, penalty: Penalty) -> Array:
    """By way of stronger penalties, from one that the beginning is not far from: each solution is
    close to the next, and no working set is much larger than what is left of it in the end."""
    strongest = float(np.abs(_pull(columns, t - columns.times(x), x, penalty)).max(initial=0.0))
    stages = int(np.ceil(np.log(max(strongest / penalty.l1, 1.0)) / np.log(1 / STAGE)))
    for i in range(stages - 1, 0, -1):
        x = on_working_sets(columns, t, x, Penalty(penalty.l1 / STAGE**i, penalty.l2), 1e-3)
    return on_working_sets(columns, t, x, penalty, EXACT)


def _pull(columns: Columns, rest: Array, x: Array, penalty: Penalty) -> Array:
    """What the loss and the L2 part want of every weight."""
    return columns.turned(rest) - penalty.l2 * x


def _off(columns: Columns, rest: Array, x: Array, penalty: Penalty) -> float:
    """By how much some weight is wanted to be another, at most."""
    pull = _pull(columns, rest, x, penalty)
    wrong = np.where(x != 0, np.abs(pull - penalty.l1 * np.sign(x)), np.abs(pull) - penalty.l1)
    return float(wrong.max(initial=0.0))


def on_working_sets(
    columns: Columns, t: Array, x: Array, penalty: Penalty, exact: float, sets: int = SETS
) -> Array:
    """The best weights, to the share ``exact`` of the penalty in the gradient."""
    passes, x = PASSES, x.copy()
    value, seen = np.inf, 0.0
    exact = max(exact, columns.rounding)
    for _ in range(sets):
        kept = np.flatnonzero(x)
        rest = t - columns.times(x)
        pull = _pull(columns, rest, x, penalty)
        over = np.abs(pull) - penalty.l1
        over[kept] = 0.0
        off = np.abs(pull[kept] - penalty.l1 * np.sign(x[kept])).max(initial=0.0)
        room = exact * max(penalty.l1, seen)
        if over.max(initial=0.0) <= room and off <= room:
            break
        now = 0.5 * rest @ rest + float(penalty.of(x))
        if not now < value * (1 - 1e-15):  # as good as rounding allows, or in need of more passes
            if passes >= MOST_PASSES:
                break
            passes = min(8 * passes, MOST_PASSES)
        value, seen = min(now, value), max(seen, float(np.abs(pull).max(initial=0.0)))
        fewest = int(np.sum(over > room)) // SPARSE_SHARE if columns.sparse else FEWEST
        most = max(FEWEST, fewest, 2 * len(kept))
        worst = np.argpartition(-over, min(most, len(over)) - 1)[:most]
        chosen = np.union1d(kept, worst[over[worst] > room])
        with blas_threads(1):  # sets are small: threads would wait for each other
            x[chosen], entries = _descended(columns, chosen, t, x[chosen], penalty, passes)
            many = int(np.count_nonzero(x))
            if many * min(many, len(t)) ** 2 <= WORTH_PASSES * passes * entries:
                x = _polished(columns, t, x, penalty)
    return x


def _descended(
    columns: Columns, chosen: Array, t: Array, x: Array, penalty: Penalty, passes: int
) -> tuple[Array, int]:
    """Some passes of coordinate descent, and how many entries of columns one of them goes through:
    of their inner products where rows are many, which are far fewer."""
    own = columns.some(chosen)
    if columns.sparse:
        return _descend(own, t, x, penalty, passes), own.nnz
    if len(t) < TALL * len(chosen):
        return _descend(own, t, x, penalty, passes), own.size
    G = columns.products(chosen)
    return _descend(own, t, x, penalty, passes, G), own.size


def _descend(
    S: Block, t: Array, x: Array, penalty: Penalty, passes: int, G: Array | None = None
) -> Array:
    """scikit-learn divides the loss by the number of rows."""
    from sklearn.linear_model import enet_path  # late: it takes longer than all of ours

    total = penalty.l1 + penalty.l2
    known = dict(precompute=False) if G is None else dict(precompute=G, Xy=S.T @ t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it may stop before it is exact is the idea
        _, found, _ = enet_path(
            S if sparse.issparse(S) else np.asfortranarray(S),
            np.ascontiguousarray(t),
            l1_ratio=penalty.l1 / total,
            alphas=[total / len(t)],
            coef_init=x,
            max_iter=passes,
            tol=1e-13,
            **known,
        )
    found = np.asarray(found[:, 0])
    return found if np.all(np.isfinite(found)) else x


def _polished(all_of_them: Columns, t: Array, x: Array, penalty: Penalty) -> Array:
    """Newton's method with the signs as they are. Weights that would change theirs become zero, and
    it goes on without them: at least up to where the first one does, the objective falls."""
    for _ in range(MOST_DROPPED):
        kept = np.flatnonzero(x)
        if not len(kept):
            return x
        columns, own = all_of_them.some(kept), x[kept]
        step = _newton(all_of_them, kept, columns, t, own, penalty)
        if step is None:
            return x
        signs = np.sign(own)
        ends = (own + step) * signs > 0
        if np.all(ends):
            x = x.copy()
            x[kept] = own + step
            return x
        first = np.min(own[~ends] / -step[~ends])
        value, best = _value(columns, t, own, penalty), own
        for share in (*TRIED, first):
            tried = own + share * step
            tried = np.where(tried * signs > 1e-14 * np.abs(own), tried, 0.0)
            now = _value(columns, t, tried, penalty)
            if now < value:
                value, best = now, tried
        if best is own:
            return x
        x = x.copy()
        x[kept] = best
    return x


def _value(columns: Block, t: Array, own: Array, penalty: Penalty) -> float:
    rest = t - columns @ own
    return float(0.5 * rest @ rest + penalty.of(own))


def _newton(
    all_of_them: Columns, kept: Array, columns: Block, t: Array, own: Array, penalty: Penalty
) -> Array | None:
    """To the minimum of the quadratic that the problem is with signs fixed, with one correction for
    the last digits; None where columns are too much the same."""
    inverse = _inverse(all_of_them, kept, columns, penalty.l2)
    if inverse is None:
        return None

    def gradient(x: Array) -> Array:
        return columns.T @ (t - columns @ x) - penalty.l2 * x - penalty.l1 * np.sign(own)

    step = inverse(gradient(own))
    if not np.all(np.isfinite(step)):
        return None
    return step + inverse(gradient(own + step))


def _inverse(
    all_of_them: Columns, kept: Array, columns: Block, l2: float
) -> Callable[[Array], Array] | None:
    """b -> (S^T S + l2 I)^-1 b for some columns S; None where that is singular.

    Of more columns than rows, by the smaller matrix: (b - S^T (S S^T + l2 I)^-1 S b) / l2, where l2
    is enough to divide by. Where it is not, the matrix gets a little more of a diagonal: a step all
    the same, and not a long one.
    """
    n, many = columns.shape
    wide = many >= n
    if wide:
        products = as_dense(columns @ columns.T)
        wide = l2 * many > LEAST_RIDGE * float(np.trace(products))
    if not wide:
        products = all_of_them.products(kept)
    least = 0.0 if wide else 1e-14 if many < n else 1e-5
    products.flat[:: len(products) + 1] += l2 + least * np.trace(products) / many
    try:
        factor = linalg.cho_factor(products, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None

    def solve(b: Array) -> Array:
        return np.asarray(linalg.cho_solve(factor, b, check_finite=False))

    return (lambda b: (b - columns.T @ solve(columns @ b)) / l2) if wide else solve
