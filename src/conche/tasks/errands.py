"""Errands: something small to be done where a node's files are, and what is answered.

A network carries an errand to where the node lives and its answer back, as bytes; neither the
coordinator nor another node opens the files.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from ..common.arrays import Array
from ..common.words import one_line
from ..errors import ConcheError, StreamError
from .key_texts import exact_texts
from .keys import Keys, check_column, differing, joined, shown
from .mark import block_mark
from .node_files import NodeFiles, check_rows, check_sum
from .tables import Table

SAID, WRONG = "said", "wrong"  # the names of an answer's JSON, or of an error, among its arrays


class Answer(NamedTuple):
    """What is answered: JSON, and arrays of numbers by name."""

    said: Mapping[str, Any]
    arrays: Mapping[str, Array]


class Errand(ABC):
    """Something to be done elsewhere. Everything in it is sent, and its answer is bytes."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Whose files it looks at, for messages."""

    @abstractmethod
    def work(self) -> Answer:
        """Do it."""

    def run(self) -> bytes:
        """Do it, and answer; what is wrong with the files is an answer, too."""
        try:
            said, arrays = self.work()
        except (ConcheError, OSError) as error:
            text = one_line(error)
            text = text if text.startswith(self.where) else f"{self.where}: {text}"
            return to_bytes({WRONG: np.frombuffer(text.encode(), np.uint8)})
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        whole[SAID] = np.frombuffer(json.dumps(said).encode(), np.uint8)
        return to_bytes(whole)


def opened(answer: bytes) -> Answer:
    """An answer as it was given; what went wrong is raised."""
    arrays = from_bytes(answer)
    if WRONG in arrays:
        raise StreamError(arrays[WRONG].tobytes().decode())
    return Answer(json.loads(arrays.pop(SAID).tobytes()), arrays)


@dataclass(frozen=True)
class NodeErrand(Errand):
    """What a node does: ``files`` are its own."""

    files: NodeFiles

    @property
    def where(self) -> str:
        return f"node {self.files.name!r}"


@dataclass(frozen=True)
class Look(NodeErrand):
    """Which columns a node has in the first of the tasks, and whether they are in all of them.

    ``model`` are the columns of a model that is trained, where it is one.
    """

    tasks: tuple[str, ...]
    model: tuple[str, ...] | None = None

    def work(self) -> Answer:
        there = set(self.files.tasks())
        for task in self.tasks:
            if task not in there:
                self.files.find(task)  # says so
        first = self.files.find(self.tasks[0], only_look=True).table
        if first.partial:
            first = self.files.find(self.tasks[0]).table
        columns = self.files.choose(first) if self.model is None else list(self.model)
        for task in self.tasks:
            table = self.files.find(task, only_look=True).table
            self.files.check(table)
            if not (table.partial and self.files.reading.categories):
                self.files.columns(table, columns, growing=self.model is None)
        index = [] if self.files.features is not None else list(first.index)
        said = {"columns": columns, "sparse": first.sparse, "file": str(first.path)}
        return Answer(said | {"index": index}, {})


@dataclass(frozen=True)
class Match(NodeErrand):
    """Which of a task's rows and columns a node has.

    Parameters
    ----------
    task : its name.
    known : the columns of the tasks before it.
    growing : whether there may be more.
    keys : of the task's rows; None: they are in the same order everywhere.
    n_rows : how many there are.
    """

    task: str
    known: tuple[str, ...]
    growing: bool
    keys: Keys | None
    n_rows: int

    def work(self) -> Answer:
        found = self.files.find(self.task)
        table = found.table
        lacking, strange = np.zeros(0, dtype=np.int64), ""
        if self.keys is None:
            check_rows(found, self.n_rows)
        else:
            own = self.files.keys(found, self.keys.salt)
            lacking = np.flatnonzero(self.keys.order(own) < 0)
            strange = self._strange(own, self.keys)
        columns = self.files.columns(table, self.known, self.growing)
        said = {"columns": columns, "file": str(table.path), "sum": check_sum(table.path)}
        return Answer(said | {"stored": table.stored, "strange": strange}, {"lacking": lacking})

    def _strange(self, own: Keys, keys: Keys) -> str:
        """How a node's keys differ from the target's, to be said if none of those is there."""
        such = "" if own.salt else f"; its own are such as {shown(str(own.values[0]))}"
        return differing(self.files.key, own.kinds, keys.kinds) + such


@dataclass(frozen=True)
class Known(NodeErrand):
    """The mark of a node's columns of a task, as it was made when they were learnt."""

    number: int  # of the node
    task: str
    columns: tuple[str, ...]
    keys: Keys | None
    n_rows: int

    def work(self) -> Answer:
        block = self.files.read(self.task, self.columns, self.keys, self.n_rows)
        return Answer({"mark": block_mark(self.number, block)}, {})


@dataclass(frozen=True)
class Targets(Errand):
    """What the target's own files say of the stream: its tasks, or one of them.

    Parameters
    ----------
    files : the target's.
    column : with the target; None: the rows alone are asked for.
    weight : the column that says what each sample counts for.
    task : which one; None: which there are.
    salt : to seal the keys with; None: they travel as they are.
    """

    files: NodeFiles
    column: str | None
    weight: str | None = None
    task: str | None = None
    salt: bytes | None = None

    @property
    def where(self) -> str:
        return "target"

    def work(self) -> Answer:
        if self.task is None:
            return Answer({"tasks": self._checked()}, {})
        found = self.files.find(self.task)
        table, rows = found
        said: dict[str, Any] = {"file": str(table.path), "rows": found.n_rows}
        arrays: dict[str, Array] = {}
        if self.column is not None:
            said["y"] = self._column(found.table, self.column, "target", rows, arrays)
        if self.weight is not None and self.column is not None:
            said["weight"] = self._column(table, self.weight, "weight", rows, arrays)
            if "weight" not in arrays:
                raise StreamError(f"{table.path}: {table.noun} {self.weight!r} is text, no weights")
        if self.files.key:
            keys = Keys.of(table, self.files.key, self.salt, rows)
            said["kinds"] = keys.kinds
            if self.salt is None:
                said["keys"] = keys.values.tolist()
            else:
                arrays["keys"] = keys.values
        return Answer(said, arrays)

    def _checked(self) -> list[str]:
        """The tasks; all of their files must have the columns that are named."""
        tasks = self.files.tasks()
        for task in tasks if self.files.task_column is None else tasks[:1]:
            table = self.files.find(task, only_look=True).table
            self.files.check(table)
            for name, what in ((self.column, "target"), (self.weight, "weight")):
                if name is not None:
                    check_column(table, name, what)
        return tasks

    @staticmethod
    def _column(
        table: Any, name: str, what: str, rows: Array | None, arrays: dict[str, Array]
    ) -> list[str] | None:
        """Numbers go among the arrays, texts are answered."""
        check_column(table, name, what)
        values = table.values(name, rows)
        if values.dtype.kind in "biuf":
            arrays["y" if what == "target" else what] = values
            return None
        return list(values.tolist())


@dataclass(frozen=True)
class Rows(Errand):
    """Some of the target's rows as people know them: the key's columns.

    ``places`` are the rows' numbers in the task; None: all, for a table of predictions.
    """

    files: NodeFiles
    task: str
    places: tuple[int, ...] | None = None

    @property
    def where(self) -> str:
        return "target"

    def work(self) -> Answer:
        table, rows = self.files.find(self.task)
        if self.places is None:
            columns = {name: self._column(table, name, rows) for name in self.files.key}
            return Answer({"columns": columns}, {})
        some = np.array(self.places) if rows is None else rows[list(self.places)]
        texts = joined([table.spelled(name, some) for name in self.files.key])
        return Answer({"first": ", ".join(shown(text) for text in texts)}, {})

    @staticmethod
    def _column(table: Table, name: str, rows: Array | None) -> list[Any]:
        """Numbers, where no digit is lost with them; else as the file has them."""
        values = table.values(name, rows)
        plain = values.dtype.kind in "biuf" and exact_texts(values) is not None
        return list(values.tolist()) if plain else table.spelled(name, rows)


@dataclass(frozen=True)
class Text(Errand):
    """A small file, as it is."""

    path: str

    @property
    def where(self) -> str:
        return self.path

    def work(self) -> Answer:
        try:
            return Answer({"text": Path(self.path).read_text(encoding="utf-8")}, {})
        except UnicodeDecodeError:
            raise StreamError("is not text") from None
        except OSError as error:
            raise StreamError(f"cannot be read ({error.strerror})") from None


@dataclass(frozen=True)
class Salt(Errand):
    """A salt that everybody in the stream will have, and nobody else."""

    size: int = 16

    @property
    def where(self) -> str:
        return "salt"

    def work(self) -> Answer:
        return Answer({"salt": secrets.token_hex(self.size)}, {})


def answers(given: Sequence[bytes]) -> list[Answer]:
    """The nodes' answers; what went wrong at the first of them is raised."""
    return [opened(answer) for answer in given]
