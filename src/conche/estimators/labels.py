"""The labels of a stream, which may appear in any task, and the outputs that stand for them.

Beside an output for every class that has appeared there is one for the class that has not: its
target is -1 in every sample. A new class starts as its copy, which is what it would be had it been
listed from the start. Two classes share an output, since one's targets are minus the other's; and
so do a single class and the one that has not appeared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from ..common.arrays import Array
from ..common.checks import real
from ..common.outputs import Outputs
from ..errors import DataError, ParameterError


@dataclass(frozen=True, eq=False)
class Labels:
    """``classes``: all that are known, in order; ``seen``: which of them have appeared."""

    classes: Array
    seen: Array  # one flag per class
    counts: Array  # how much each has weighed so far
    grown: bool = False  # whether one has come that was neither listed nor in the first task

    @classmethod
    def of(cls, y: Array, listed: Any = None, known: Labels | None = None) -> Labels:
        """After a task whose labels are y; ``listed`` are classes that a user knows of.

        Raises a `DataError` or a `ParameterError` for what are no labels of this stream.
        """
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise DataError(str(error)) from None
        parts = [np.unique(y)]
        if listed is not None:
            parts.append(checked(listed))
        if known is not None:
            if listed is not None:
                left_out = np.setdiff1d(known.classes, parts[-1]).tolist()
                if left_out:
                    raise ParameterError(
                        f"classes={listed!r} leave out {left_out[0]!r}, which the stream knows"
                    )
            parts.append(known.classes)
        _check_kinds(parts)
        classes = np.unique(np.concatenate(parts))
        before = known.classes[known.seen] if known is not None else parts[0]
        counts = np.zeros(len(classes))
        if known is not None:
            counts[np.isin(classes, known.classes)] = known.counts
        grown = False
        if known is not None:
            expected = np.concatenate(parts[1:])
            grown = known.grown or not np.all(np.isin(parts[0], expected))
        seen = np.isin(classes, np.concatenate([before, parts[0]]))
        return cls(classes, seen, counts, grown)

    def counted(
        self, y: Array, weights: Array | None, class_weight: Any
    ) -> tuple[Labels, Array | None]:
        """With this task's samples, and what its samples weigh by ``class_weight``."""
        places = np.searchsorted(self.classes, y)
        more = np.bincount(places, weights, len(self.classes))
        new = replace(self, counts=self.counts + more)
        if class_weight is None:
            return new, None
        return new, new._by_class(class_weight)[places]

    def _by_class(self, class_weight: Any) -> Array:
        if isinstance(class_weight, str) and class_weight == "balanced":
            there = self.counts > 0
            share = self.counts * np.sum(there) / np.sum(self.counts)
            return np.divide(1.0, share, out=np.zeros(len(share)), where=there)
        if not isinstance(class_weight, dict):
            raise ParameterError(
                f"class_weight={class_weight!r} must be None, 'balanced' or a dict of numbers"
            )
        if class_weight:
            _check_kinds([np.unique(np.array(list(class_weight))), self.classes])
        known = self.classes.tolist()
        return np.array([real(f"class_weight[{c!r}]", class_weight.get(c, 1.0)) for c in known])

    @property
    def coming(self) -> float:
        """The share of classes that are yet to come: of those listed; else as many as there have
        been, if they have come one after another so far."""
        listed = 1 - float(np.mean(self.seen))
        return listed or 0.5 * self.grown

    @property
    def n_outputs(self) -> int:
        """Of the nodes: one for every class that has appeared, as far as they differ, and one for
        the class that has not."""
        count = int(np.sum(self.seen))
        return count if count <= 2 else count + 1

    def targets(self, y: Array, dtype: Any) -> Array:
        """-1 or 1: n_samples x n_outputs."""
        appeared = self.classes[self.seen]
        chosen = appeared[1:] if len(appeared) <= 2 else appeared
        Y = -np.ones((len(y), self.n_outputs))
        Y[:, :-1] = np.where(y[:, None] == chosen, 1, -1)
        return Y.astype(dtype)

    def every(self) -> Outputs:
        """The output of each class."""
        return Outputs(*zip(*map(self._output, self.classes), strict=True))

    def shown(self) -> Outputs:
        """The outputs that users see: one for up to two classes, the last one's; else each."""
        every = self.every()
        return every if len(self.classes) > 2 else Outputs(every.places[-1:], every.signs[-1:])

    def since(self, before: Labels) -> Outputs | None:
        """How today's outputs began, from those of ``before``; None where nothing has changed."""
        if np.array_equal(self.classes[self.seen], before.classes[before.seen]):
            return None
        appeared = self.classes[self.seen]
        chosen = appeared[1:] if len(appeared) <= 2 else appeared
        unseen = (before.n_outputs - 1, 1)
        return Outputs(*zip(*map(before._output, chosen), unseen, strict=True))

    def _output(self, label: Any) -> tuple[int, int]:
        """Where a class's output is, and its sign."""
        appeared = self.classes[self.seen]
        place = int(np.searchsorted(appeared, label))
        last = self.n_outputs - 1
        if place == len(appeared) or appeared[place] != label:
            return last, 1
        if len(appeared) > 2:
            return place, 1
        return 0, 1 if len(appeared) == 2 and place == 1 else -1


def checked(classes: Any) -> Array:
    """The labels that a user lists, each once, in order."""
    try:
        known = np.asarray(unique_labels(np.asarray(classes)))
    except (TypeError, ValueError):
        known = np.empty(0)
    if not len(known):
        raise ParameterError(f"classes={classes!r} must list labels, all numbers or all texts")
    return known


def _check_kinds(parts: list[Array]) -> None:
    """All numbers, or all texts."""
    kinds = ["number" if part.dtype.kind in "biuf" else "text" for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind != kinds[-1]:
            raise DataError(
                f"label {part.tolist()[0]!r} is a {kind}, but those of the stream are "
                f"{kinds[-1]}s, such as {parts[-1].tolist()[0]!r}"
            )


def histogram(y: Array) -> bytes:
    """How often each label comes: whatever else comes later, a task is known by it again."""
    labels, counts = np.unique(y, return_counts=True)
    return repr((labels.tolist(), counts.tolist())).encode()
