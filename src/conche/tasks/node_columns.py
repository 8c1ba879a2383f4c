"""A task's matrix whose columns lie in files of the nodes' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..common.arrays import Array, Block
from ..common.words import one_line
from ..errors import ConcheError, StreamError
from .columns import Columns
from .encoding import values_beside
from .errands import Errand
from .keys import Keys
from .node_files import NodeFiles

BETWEEN = "/"  # a node's name and its column's
Visit = Callable[[Sequence[Errand]], list[bytes]]


class Part(NamedTuple):
    """One node's columns of a task, by their names in its own files."""

    files: NodeFiles
    columns: tuple[str, ...]


class NodeColumns(Columns):
    """Columns that each node reads from its own files, its rows in the order of the task's keys.

    Parameters
    ----------
    task : its name.
    parts : of all nodes, or of those that are asked.
    keys : of the rows; None: they are in the same order everywhere.
    n_rows : how many there are.
    visit : sends every node an errand, where these are all nodes' columns in a stream. Such a
        matrix cannot be read at once: nobody has the files of all nodes.
    """

    names: Sequence[str]

    def __init__(
        self,
        task: str,
        parts: Sequence[Part],
        keys: Keys | None,
        n_rows: int,
        visit: Visit | None = None,
    ):
        self.task, self.parts, self.keys, self.n_rows, self.visit = task, parts, keys, n_rows, visit
        self._places = [(k, name) for k, part in enumerate(parts) for name in part.columns]
        self._name()

    def _name(self) -> None:
        self.names = [f"{self.parts[k].files.name}{BETWEEN}{name}" for k, name in self._places]

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self._places)

    def select(self, which: slice | Array) -> NodeColumns:
        """Some of the columns: their nodes' files are all that is left of the description."""
        chosen = self._places[which] if isinstance(which, slice) else None
        if chosen is None:
            chosen = [self._places[j] for j in np.asarray(which).tolist()]
        nodes = list(dict.fromkeys(k for k, _ in chosen))
        own = [tuple(name for k, name in chosen if k == node) for node in nodes]
        parts = [self.parts[k]._replace(columns=c) for k, c in zip(nodes, own, strict=True)]
        new = NodeColumns(self.task, parts, self.keys, self.n_rows)
        new._places = [(nodes.index(k), name) for k, name in chosen]
        new._name()
        new.sparse = self.sparse
        return new

    def reaching(self, names: Sequence[str]) -> NodeColumns:
        more = values_beside(names, frozenset(self.names))
        if not more:
            return self
        new = copy(self)
        number = {part.files.name: k for k, part in enumerate(self.parts)}
        late = [(number[node], own) for node, _, own in (name.partition(BETWEEN) for name in more)]
        new.parts = [
            part._replace(columns=(*part.columns, *(own for j, own in late if j == k)))
            for k, part in enumerate(self.parts)
        ]
        new._places = [*self._places, *late]
        new._name()
        return new

    def read(self) -> Block:
        if self.visit is not None:
            raise StreamError(
                f"task {self.task}: every node has its own columns, and nobody has them all; "
                f"models learn and predict from them where they are"
            )
        blocks = [self._block(part) for part in self.parts]
        if len(blocks) == 1:
            return blocks[0]
        if any(sparse.issparse(block) for block in blocks):
            whole = sparse.hstack(blocks, "csc")
        else:
            whole = np.hstack(blocks)
        flat = [(k, name) for k, part in enumerate(self.parts) for name in part.columns]
        if flat == self._places:
            return whole
        where = {place: j for j, place in enumerate(flat)}
        return whole[:, [where[place] for place in self._places]]

    def _block(self, part: Part) -> Block:
        try:
            return part.files.read(self.task, part.columns, self.keys, self.n_rows)
        except (ConcheError, OSError) as error:
            raise StreamError(f"node {part.files.name!r}: {one_line(error)}") from None

    def sendable(self) -> NodeColumns:
        """As it is: a description."""
        return self
