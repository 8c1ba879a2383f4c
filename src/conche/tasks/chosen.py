"""What a stream takes of a table: which rows are which task's, and which columns it learns from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..common.arrays import Array
from ..common.words import counted, did_you_mean
from ..errors import StreamError
from .groups import matching
from .tables import Table


def find_tasks(
    table: Table, task_column: str, files: Sequence[Path]
) -> tuple[list[str], list[Array]]:
    """The tasks' names, in the order of their first rows, and which rows are theirs."""
    if len(files) > 1:
        raise StreamError(
            f"{files[0].parent}: a task column needs one table, not {len(files)} files"
        )
    if task_column not in table.names:
        raise StreamError(f"{table.path}: no column {task_column!r} for the task")
    labels = table.values(task_column)
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    names, rows = [], []
    by_task = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for code in np.argsort(first):
        names.append(str(labels[first[code]]))
        rows.append(by_task[code])
    return names, rows


def choose(
    table: Table,
    features: Sequence[str] | None,
    drop: Sequence[str],
    taken: Sequence[str],
    categories: Sequence[str] = (),
    first: bool = True,
) -> list[str]:
    """The columns of a table to learn from.

    Parameters
    ----------
    features, drop : take only these, take all but these; names or patterns.
    taken : columns that are something else: the target, keys.
    categories : texts whose values are to be columns.
    first : whether all that is named must be there.
    """
    free = {n: j for j, n in enumerate(table.features if features is None else table.names)}
    for name in taken:
        free.pop(name, None)
    chosen = dict.fromkeys(free if features is None else ())
    for pattern in features or ():
        found = matching(pattern, free)
        if first and not found:
            near = did_you_mean(pattern, free)
            raise StreamError(f"{table.path}: no column {pattern!r} among the features{near}")
        chosen |= dict.fromkeys(found)
    for pattern in drop:
        dropped = matching(pattern, free)
        if first and not dropped:
            near = did_you_mean(pattern, free)
            raise StreamError(f"{table.path}: no column {pattern!r} to drop{near}")
        for name in dropped:
            chosen.pop(name, None)
    if not chosen:
        raise StreamError(f"{table.path}: no columns beside the target")
    for name in categories if first else ():
        if not matching(name, {each: j for j, each in enumerate(chosen)}) and name != "*":
            near = did_you_mean(name, chosen)
            raise StreamError(f"{table.path}: no column {name!r} for the categories{near}")
    return table.encoded(list(chosen), first)


def warn_of_absent(where: object, absent: Sequence[str], columns: Sequence[str]) -> None:
    """A model that fills what is missing also fills whole columns; that may not be meant."""
    warnings.warn(
        f"{where}: lacks {len(absent)} of the model's {counted(len(columns), 'column')}, such as "
        f"{absent[0]!r}; they are filled in every row",
        stacklevel=3,
    )
