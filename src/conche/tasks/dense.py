"""A stream on disk, gone through with one task in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StreamError
from .files import FileStream
from .task import Task


class DenseTasks:
    """A stream's tasks in memory one at a time, as often as they are asked for; the target must be
    numeric. ``options`` are those of `FileStream`; missing values that are kept become the mean of
    their column so far.

    Parameters
    ----------
    stream, target, options : as in `FileStream`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "january.npz", X=np.eye(3), y=np.ones(3))
    ...     [type(task.X).__name__ for task in DenseTasks(folder)]
    ['ndarray']
    """

    def __init__(self, stream: str | Path, target: str = "y", **options: Any):
        self.files = FileStream(stream, target, **options)
        self.files.growing = False

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Task]:
        total, count = np.zeros(len(self.files.columns)), np.zeros(len(self.files.columns))
        where = self.files.stream
        for task in self.files:
            if task.X.sparse:
                raise StreamError(
                    f"{where}: sparse columns cannot be planned for: give sizes instead"
                )
            if task.y.dtype.kind == "U":
                raise StreamError(f"{where}: column {self.files.target!r} is not numeric (text)")
            X = np.ascontiguousarray(task.X)
            there = ~np.isnan(X)
            total += np.sum(X, axis=0, where=there)
            count += there.sum(axis=0)
            if not there.all():
                X = np.where(there, X, total / np.maximum(count, 1))
            yield Task(X, task.y.astype(float), name=task.name)
