"""What the coordinator of a lossless memory keeps: sums, the last ridge, and marks of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from ..common.arrays import Array, here, is_here, like
from ..common.words import TOO_LARGE
from ..errors import DataError
from .evidence import Solution, Wish, solve
from .sums import Own, Rows, Sums

DISCOUNTS = (1.0, 0.97, 0.9, 0.7)  # of the past, a task: what discount="auto" chooses from
FADING = 0.95  # of a score, a task
GROWN = 1.5  # times as many rows as the ridge was found from: it is looked for anew
ENOUGH = 10  # rows that show how far a column varies
LEAST_ROWS = 8  # of a task that is known again
DIGITS = 9  # of the numbers that it is known by: the order of its rows does not matter


@dataclass(frozen=True, eq=False)
class Path:
    """The sums with one discount."""

    sums: Sums
    discount: float = 1.0
    score: float = 0.0  # squared errors on tasks before they were learnt
    ridge: Array | None = None  # m: on correlations, where the next search begins
    rows: float = 0.0  # that it was found from


@dataclass(frozen=True, eq=False)
class Past:
    """All that is kept of tasks; a value."""

    paths: tuple[Path, ...]
    unit: Array  # p: the columns' deviations in the first tasks; nan until there are rows enough
    since: Array  # p: how many rows there were when each column came
    known: tuple[int, ...] = ()  # of tasks so far, to know one that comes again

    @classmethod
    def nothing(cls, p: int, m: int, discounts: tuple[float, ...], beside: Any = None) -> Past:
        """Before the first task."""
        sums = Sums.nothing(p, m, beside)
        paths = tuple(Path(sums, discount) for discount in discounts)
        return cls(paths, np.full(p, np.nan), np.zeros(p))

    @property
    def best(self) -> Path:
        """The model's: the one that has predicted best; ties go to the first."""
        return min(self.paths, key=lambda path: path.score)

    def changed(self, change: Callable[[Sums], Sums]) -> Past:
        """With other sums."""
        paths = tuple(replace(path, sums=change(path.sums)) for path in self.paths)
        return replace(self, paths=paths)

    def moved(self, put: Callable[[Array], Array]) -> Past:
        """On another device."""
        return self.changed(lambda sums: sums.moved(put))

    def with_outputs(self, outputs: Any) -> Past:
        """With other targets; each begins at the ridge of the one that it comes from."""
        new = self.changed(lambda sums: sums.of_outputs(outputs))
        paths = [
            path if path.ridge is None else replace(path, ridge=outputs.among(path.ridge))
            for path in new.paths
        ]
        return replace(new, paths=tuple(paths))

    def with_columns(self, values: Array) -> Past:
        """With more columns, which so far have had these values."""
        more = len(values)
        unit = np.append(self.unit, np.full(more, np.nan))
        since = np.append(self.since, np.full(more, self.paths[0].sums.n))
        changed = self.changed(lambda sums: sums.with_columns(values))
        return replace(changed, unit=unit, since=since)

    def of_columns(self, which: Array) -> Past:
        """Of some of the columns alone, in rising order."""
        changed = self.changed(lambda sums: sums.of_columns(which))
        return replace(changed, unit=self.unit[which], since=self.since[which])

    def with_path(self, path: Path) -> Past:
        """With the ridge that was found for one of the paths."""
        paths = (path if one.discount == path.discount else one for one in self.paths)
        return replace(self, paths=tuple(paths))

    def learnt(self, rows: Rows, wish: Wish, labels: bytes = b"") -> tuple[Past, bool]:
        """With one more task, and whether it has come before; ``labels`` tell it from others."""
        paths = self.paths
        if len(paths) > 1 and paths[0].sums.n > 0:
            paths = tuple(self._scored(path, rows, wish) for path in paths)
        faded = [path.sums.faded(path.discount) for path in paths]
        grown, own = zip(*(sums.plus(rows) for sums in faded), strict=True)
        mark = _mark(own[0], rows, labels)
        again = mark is not None and mark in self.known
        if again:  # no news of how many rows there are
            pairs = zip(grown, faded, strict=True)
            grown = tuple(replace(g, fresh=f.fresh, squares=f.squares) for g, f in pairs)
        pairs = zip(paths, grown, strict=True)
        paths = tuple(replace(path, sums=sums) for path, sums in pairs)
        known = self.known if mark is None or again else (*self.known, mark)
        sums = paths[0].sums
        _check(sums)
        seen, squares = sums.n - self.since, sums.diagonal
        shows = np.isnan(self.unit) & (seen >= ENOUGH) & (squares > 0)
        now = np.sqrt(squares / np.where(shows, seen, 1.0))
        return Past(paths, np.where(shows, now, self.unit), self.since, known), again

    def _scored(self, path: Path, rows: Rows, wish: Wish) -> Path:
        found, path = self.solved(path, wish, anew=False)
        return replace(path, score=FADING * path.score + float(errors(rows, found).sum()))

    def solved(self, path: Path, wish: Wish, anew: bool = True) -> tuple[Solution, Path]:
        """The solution, and the path with the ridge that was found. Unless it is to be found
        ``anew``, the last one stays in force while rows are not many more."""
        wish = self._in_units(wish)
        due = path.ridge is None or path.sums.n >= GROWN * path.rows
        found = solve(path.sums, wish, path.ridge, keep=not (due or anew))
        if not due or wish.ridge is not None:  # so that who asks in between changes nothing
            return found, path
        return found, replace(path, ridge=found.ridge, rows=path.sums.n)

    def _in_units(self, wish: Wish) -> Wish:
        """Columns whose unit is still open have that of today."""
        if wish.unit is None or not np.any(np.isnan(wish.unit)):
            return wish
        sums = self.paths[0].sums
        now = np.sqrt(np.maximum(sums.diagonal / max(sums.n, 1.0), 0.0))
        now = np.where(now > 0, now, 1.0)
        return replace(wish, unit=np.where(np.isnan(self.unit), now, self.unit))


def _check(sums: Sums) -> None:
    """Refuse numbers whose squares overflow."""
    if not (np.isfinite(sums.diagonal).all() and np.isfinite(sums.YY).all()):
        raise DataError(TOO_LARGE)


def errors(rows: Rows, found: Solution) -> Array:
    """Squared errors of these rows, summed; one number per target."""
    off = here(rows.Y) - predictions(rows, found)
    return np.einsum("ij,ij->j", off, off)


def predictions(rows: Rows, found: Solution) -> Array:
    """Of these rows, which may have been multiplied by the roots of their weights, or mixed."""
    w = found.weights if is_here(rows.X) else like(rows.X, found.weights)
    ones = np.ones(len(rows.Y)) if rows.ones is None else here(rows.ones)
    return here(rows.X @ w) + np.outer(ones, found.offset)


def _mark(own: Own, rows: Rows, labels: bytes) -> int | None:
    """By which a task is known again: its weight, where its columns and targets are, how far they
    vary, and how they are correlated."""
    if rows.X.shape[0] < LEAST_ROWS:
        return None
    squares, mean, XY = np.append(own.X, own.Y), own.mean, own.XY
    if labels:  # whose outputs change with the classes
        squares, mean, XY = own.X, own.mean[: len(own.X)], np.zeros((len(own.X), 0))
    root = np.sqrt(squares)
    x, y = root[: len(own.X), None], root[len(own.X) :]
    scale = 10.0 ** np.floor(np.log10(np.where(squares > 0, squares, 1.0)))
    numbers: list[Array] = [
        np.round(squares / scale, DIGITS) * scale,
        np.round(_over(mean, root / rows.weight**0.5), DIGITS // 2),
        np.round(_over(XY, x * y), DIGITS // 2).ravel(),
        np.array([rows.weight]),
    ]
    seal = blake2b((np.concatenate(numbers) + 0.0).tobytes() + labels, digest_size=8)
    return int.from_bytes(seal.digest(), "big")


def _over(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
