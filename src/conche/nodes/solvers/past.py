"""What an elastic net's coordinator knows: all tasks so far as rows of the columns that were
offered, and the task that is being learnt beside them.

Rows V and targets t stand for the past, no more rows than columns: |t - V w|^2 is the sum of all
squared residuals. A task's rows join them, and an orthogonal transformation makes them few again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...common.arrays import Array, column_dots, column_squares
from ...common.linear import solve_upper, triangle_of
from ...common.words import TOO_LARGE, too_large
from ...errors import DataError, DivergenceError
from ..scalars import PastScalars
from ..scaling import Kept
from .cholesky import Cholesky
from .l1 import FEW_ENTRIES, Penalty, elastic_net

WELL_CONDITIONED = 1e-7  # reciprocal condition of columns of length one: nine digits are left
TALL = 3  # rows for every column, that are better made few before they are worked with


class Past(NamedTuple):
    """|targets - rows w|^2 / 2 for some of the columns."""

    rows: Array  # any number x columns
    targets: Array  # x outputs
    among: Array  # the columns' numbers among all nodes' columns

    @classmethod
    def known(cls, kept: Kept, outputs: int) -> Past:
        """What the coordinator has kept; nothing before the first task."""
        if "among" not in kept:
            return cls(np.zeros((0, 0)), np.zeros((0, outputs)), np.zeros(0, dtype=int))
        return cls(kept["rows"], kept["targets"], kept["among"].astype(int))

    def to_keep(self) -> dict[str, Array]:
        """By name."""
        among = self.among.astype(float)
        return {"rows": self.rows, "targets": self.targets, "among": among}

    def weighed(self, share: float) -> Past:
        """``share`` times it."""
        return self._replace(rows=share**0.5 * self.rows, targets=share**0.5 * self.targets)

    def joined(self, numbers: Array, square: Array, wanted: Array) -> Past:
        """With more columns, of which nothing is known but what the past wants of each at weight
        zero, and its own squares: a row each."""
        more, (m, q) = len(numbers), self.rows.shape
        known = np.flatnonzero(square > 0)
        own = np.zeros((len(known), more))
        own[np.arange(len(known)), known] = square[known] ** 0.5
        rows = np.block([[self.rows, np.zeros((m, more))], [np.zeros((len(known), q)), own]])
        targets = wanted[known] / square[known, None] ** 0.5
        among = np.concatenate([self.among, numbers])
        return Past(rows, np.concatenate([self.targets, targets]), among)

    def with_rows(self, rows: Array, targets: Array) -> Past:
        """And a task's; as few rows as say the same."""
        q = self.rows.shape[1]
        if len(rows) + len(self.rows) > q + 1:
            few = _triangle([(rows, targets), (self.rows, self.targets)])
            if few is not None:
                return self._replace(rows=few[0], targets=few[1])
        if len(self.rows):
            rows = np.concatenate([rows, self.rows])
            targets = np.concatenate([targets, self.targets])
        return self._replace(rows=rows, targets=targets).packed()

    def objective(self, weights: Array, penalty: Penalty, free: int | None) -> Array:
        """With the penalty, for weights of all columns; per output."""
        own = weights[self.among]
        rest = self.targets - self.rows @ own
        own = own[self.among != free]
        return 0.5 * column_dots(rest, rest) + penalty.of(own)

    def solved(self, weights: Array, which: Array, penalty: Penalty, free: int | None) -> Array:
        """The best weights of some of the columns, where the others' stay zero."""
        among = self.among[which]
        place = None if free is None else int(np.flatnonzero(among == free)[0])
        best = weights.copy()
        best[among] = elastic_net(self.rows[:, which], self.targets, weights[among], penalty, place)
        return best

    def some(self, which: Array) -> Past:
        """Of some of the columns, where the others' weights are zero."""
        return self._replace(rows=self.rows[:, which], among=self.among[which]).packed()

    def packed(self) -> Past:
        """No more rows than columns and one, by orthogonal transformations, which lose no digits;
        what columns leave of the targets is in the last row: all that counts of it is its size."""
        q = self.rows.shape[1]
        if len(self.rows) <= q + 1:
            return self
        R = triangle_of(np.hstack([self.rows, self.targets]))
        beyond = np.sqrt(np.sum(R[q:, q:] ** 2, axis=0, keepdims=True))
        rows = np.concatenate([R[:q, :q], np.zeros((1, q))])
        return self._replace(rows=rows, targets=np.concatenate([R[:q, q:], beyond]))


def _triangle(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array] | None:
    """The same by inner products, many times as quick; None where that would cost digits."""
    every = [(_products(A), A.T @ t) for A, t in parts]
    G, c = (np.asarray(sum(each)) for each in zip(*every, strict=True))
    size = np.sqrt(np.diagonal(G))
    if not np.all(size > 0) or not np.all(np.isfinite(size)):
        return None
    inner = Cholesky.of(
        np.asfortranarray(G / size / size[:, None]), worst=WELL_CONDITIONED / len(G) ** 0.5
    )
    if inner is None:
        return None
    assert inner.L is not None  # in NumPy
    R, targets = np.tril(inner.L).T, inner.half(c / size[:, None])
    R = R * size
    best = solve_upper(R, targets)
    beyond = np.sqrt(sum(column_dots(t - A @ best, t - A @ best) for A, t in parts))
    return np.vstack([R, np.zeros((1, len(G)))]), np.vstack([targets, beyond])


def _products(A: Array) -> Array:
    """A^T A, by what A has where that is little."""
    if np.count_nonzero(A) >= FEW_ENTRIES * A.size:
        return A.T @ A
    some = sparse.csc_array(A)
    return (some.T @ some).toarray()


class DualPoint(NamedTuple):
    """A direction that an intercept is content with: g, its positive entries times ``up``, its
    negative ones times ``down``, less ``level`` times the constant column."""

    up: Array
    down: Array
    level: Array
    possible: Array  # whether there is one

    @classmethod
    def of(cls, g: Array) -> DualPoint:
        """Without an intercept: g itself."""
        ones = np.ones(g.shape[1])
        return cls(ones, ones, np.zeros_like(ones), ones > 0)

    @classmethod
    def level_with(cls, g: Array, constant: Array, past: Array, rest: Array) -> DualPoint:
        """For the squared loss: without its projection on the constant column, which is
        ``constant`` in the task's rows and ``past`` in those of the past, of residuals ``rest``."""
        ones = np.ones(g.shape[1])
        level = (constant @ g + past @ rest) / (constant @ constant + past @ past)
        return cls(ones, ones, level, ones > 0)

    @classmethod
    def balanced_with(cls, g: Array, constant: Array, past: Array, rest: Array) -> DualPoint:
        """For others, whose dual has a boundary: one sign gives way to the other."""
        up, down = (constant @ np.maximum(sign * g, 0.0) for sign in (1, -1))
        more = up - down + past @ rest
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = 1 - more / up, 1 + more / down
        up, down = (np.where(s * more > 0, x, 1.0) for s, x in zip((1, -1), shares, strict=True))
        possible = (up >= 0) & (down >= 0)
        up, down = (np.where(possible, x, 0.0) for x in (up, down))
        return cls(up, down, np.zeros(g.shape[1]), possible)

    def apply(self, g: Array, constant: Array) -> Array:
        """The direction itself."""
        return np.where(g > 0, self.up, self.down) * g - self.level * constant[:, None]


class Learning:
    """A task under way, seen from the coordinator: ``rows`` of all that was offered, in the order
    of ``past.among``; what they leave of the targets, at the weights so far."""

    def __init__(self, past: Past, weights: Array, penalty: Penalty, n: int, free: int | None):
        self.past, self.weights, self.penalty, self.free = past, weights, penalty, free
        self.rows = np.zeros((n, len(past.among)))
        self.rest = np.zeros((n, weights.shape[1]))
        self.places = np.full(len(weights), -1)  # of all columns among those
        self.places[past.among] = np.arange(len(past.among))
        self.z = np.zeros((0, weights.shape[1]))
        self._whole: Past | None = None  # all rows as few, as long as they are the same

    def add(self, numbers: Array, square: Array, wanted: Array, columns: Array) -> None:
        """Columns that are offered, the past's own among them; ``columns`` may have no rows yet."""
        if not len(numbers):
            return
        self._whole = None
        new, nothing = self.places[numbers] < 0, not len(self.past.among)
        if np.any(new):
            first = len(self.past.among)
            # what is wanted at the weights so far, which are zero but for columns that were let go
            at_zero = wanted[new] + square[new, None] * self.weights[numbers[new]]
            self.past = self.past.joined(numbers[new], square[new], at_zero)
            self.places[numbers[new]] = np.arange(first, len(self.past.among))
            more = np.zeros((len(self.rows), int(np.sum(new))))
            self.rows = np.hstack([self.rows, more]) if self.rows.shape[1] else more
        if len(columns) != len(self.rows):  # weighed otherwise, for every output or for all
            if not len(columns):
                return
            self.rows = np.zeros((len(columns), len(self.past.among)))
        if nothing:  # they come in this order
            self.rows = columns
        else:
            self.rows[:, self.places[numbers]] = columns

    @property
    def place(self) -> int | None:
        """Of the intercept among the columns."""
        return None if self.free is None else int(self.places[self.free])

    @property
    def own(self) -> Array:
        """The weights of the columns that were offered."""
        return self.weights[self.past.among]

    @property
    def past_rest(self) -> Array:
        """What the past's rows leave of their targets."""
        return self.past.targets - self.past.rows @ self.own

    def past_constant(self) -> Array:
        """The intercept's column in the past's rows."""
        if self.place is None or self.place < 0:
            return np.zeros(len(self.past.rows))
        return self.past.rows[:, self.place]

    def solve(self) -> Array:
        """How to move the weights: to the best ones of all columns that were offered."""
        w = self.own
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.sum(column_squares(self.rows))):
                raise DataError(TOO_LARGE)
            if not np.isfinite(np.sum(column_squares(self.rest))):
                raise DivergenceError(too_large("the target"))
        if len(self.rows) == len(self.rest):
            self.z = self._solved(self.rows, slice(None)) - w
        else:
            each = np.split(self.rows, w.shape[1])
            found = [self._solved(rows, slice(j, j + 1)) for j, rows in enumerate(each)]
            self.z = np.hstack(found) - w
        return self.z

    def _solved(self, rows: Array, outputs: slice) -> Array:
        """For some outputs, whose task has these rows."""
        w, past = self.own[:, outputs], self.past
        sparsely = np.count_nonzero(rows) < FEW_ENTRIES * rows.size  # what they have is few already
        goal = self.rest[:, outputs] + rows @ w
        whole = past._replace(targets=past.targets[:, outputs])
        if not sparsely and len(rows) + len(past.rows) > TALL * rows.shape[1]:
            whole = whole.with_rows(rows, goal) if self._whole is None else self._whole
            self._whole = whole if len(self.rows) == len(self.rest) else None
        else:
            whole = whole._replace(
                rows=np.concatenate([rows, past.rows]),
                targets=np.concatenate([goal, whole.targets]),
            )
        penalty = Penalty(*(np.broadcast_to(x, len(self.rest.T))[outputs] for x in self.penalty))
        return elastic_net(whole.rows, whole.targets, w, penalty, self.place)

    def remembered(self) -> Past:
        """The past and the task, at its end."""
        if self._whole is not None:
            return self._whole
        return self.past.with_rows(self.rows, self.rest + self.rows @ self.own)

    def pulls(self, point: DualPoint) -> Array:
        """What the task wants of every column, at the dual point."""
        level = 0.0
        if self.place is not None:
            level = point.level * self.rows[:, [self.place]]
        return self.rows.T @ (self.rest - level)

    def scalars(self, point: DualPoint, pull: Array, most: Array) -> PastScalars:
        """Penalties before and after the move z, and what certifies the weights as they are: the
        task's ``pull`` on every column at the dual point, and the ``most`` on any other."""
        rest, w, constant = self.past_rest, self.own, self.past_constant()
        after = rest - self.past.rows @ self.z
        found = w + self.z
        dual = rest - point.level * constant[:, None]
        pull = pull + self.past.rows.T @ dual - self.penalty.l2 * w
        if self.place is not None:
            pull[self.place], w[self.place], found[self.place] = 0.0, 0.0, 0.0
        worst = np.maximum(most, np.abs(pull).max(axis=0, initial=0.0)) / self.penalty.l1
        return PastScalars(
            now=self.penalty.of(w) + 0.5 * column_dots(rest, rest),
            after=self.penalty.of(found) + 0.5 * column_dots(after, after),
            excess=np.where(point.possible, np.maximum(worst - 1, 0.0), np.inf),
            squares=self.penalty.l2 * np.sum(w**2, axis=0) + column_dots(dual, dual),
            aligned=column_dots(dual, self.past.targets),
            up=point.up,
            down=point.down,
            level=point.level,
        )

    def accept(self, step: Array) -> None:
        """Move: as far as the step says, per output."""
        moved, self.z = step * self.z, np.zeros_like(self.z)
        self.weights = self.weights.copy()
        self.weights[self.past.among] += moved
        if len(self.rows) == len(self.rest):  # else they are asked for again
            self.rest = self.rest - self.rows @ moved
