"""Streams whose nodes each have files of their own, on their own machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .common.arrays import Array
from .common.checks import one_of
from .common.words import counted
from .errors import ParameterError, StreamError
from .estimators.base import LinearModel
from .estimators.connection import connect
from .network import Network
from .nodes import Partition
from .nodes.home import Drop, Home, token_of
from .tasks.chosen import warn_of_absent
from .tasks.errands import Answer, Errand, Known, Look, Match, Rows, Salt, Targets, Text, opened
from .tasks.errands import answers as all_of
from .tasks.keys import SHOWN, Keys
from .tasks.lacking import Lacking
from .tasks.mark import Mark
from .tasks.node_columns import BETWEEN, NodeColumns, Part
from .tasks.stream_file import StreamFile
from .tasks.task import Task

ROWS = ("all", "common")


class _Target(NamedTuple):
    """What the target's file says of a task."""

    y: Array
    weights: Array | None
    keys: Keys | None

    def only(self, rows: Array) -> _Target:
        return self._replace(
            y=self.y[rows],
            weights=None if self.weights is None else self.weights[rows],
            keys=None if self.keys is None else self.keys.only(rows),
        )


class NodeStream:
    """The tasks of a stream whose every node reads files of its own, one task at a time.

    A TOML file says where the target is, what rows are matched by, and for every node its files on
    its own machine (docs/parties.md). The target's files are opened where the coordinator is, a
    node's files where the node is, and nowhere else. Columns are called ``node/column``.

    Parameters
    ----------
    file : the TOML file.
    network : where the nodes are: "local", "ray", "mpi", or a Network object. A model that learns
        from the stream gets the same one: ``network=stream.network``.
    missing : "keep" lets missing values, and rows that a node does not have, through to a model
        that fills them; "refuse" names node, file and what is missing.
    rows : "all" that the target has, or the "common" ones that all nodes have.
    plain_keys : send keys as they are, and not as salted digests.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, head in (("target", "hour,y"), ("north", "hour,a,b"), ("south", "hour,c")):
    ...     (folder / name).mkdir()
    ...     rows = [",".join([str(hour)] * len(head.split(","))) for hour in range(9)]
    ...     _ = (folder / name / "may.csv").write_text("\\n".join([head, *rows]))
    >>> _ = (folder / "stream.toml").write_text('''
    ... key = "hour"
    ... target = {files = "target", column = "y"}
    ... nodes = {north = {files = "north"}, south = {files = "south"}}
    ... ''')
    >>> stream = NodeStream(folder / "stream.toml")
    >>> stream.names, stream.columns, stream.partition
    (['may'], ['north/a', 'north/b', 'south/c'], [['north/*'], ['south/*']])
    """

    def __init__(
        self,
        file: str | Path,
        network: str | Network = "local",
        missing: str = "refuse",
        rows: str = "all",
        plain_keys: bool = False,
    ):
        one_of("missing", missing, ("refuse", "keep"))
        self.stream, self.missing, self.rows = file, missing, one_of("rows", rows, ROWS)
        self.network: Network = connect(network).network
        text = self._centrally(Text(str(file))).said["text"]
        self.said = StreamFile.parse(text, str(file), missing)
        if rows == "common" and not self.said.target.key:
            raise ParameterError("rows='common' needs a key: without one rows cannot be told apart")
        self.salt = None
        if not plain_keys:
            self.salt = bytes.fromhex(self._centrally(Salt()).said["salt"])
        self.target, self.weight = self.said.column, self.said.weight
        self.network.settle(len(self.said.nodes), self.said.workers)
        self.names: list[str] = self._centrally(Targets(self.said.target, None)).said["tasks"]
        self.notes: list[str] = []  # what users should hear of
        self.growing = True  # whether tasks may have columns that the first has not
        self._lacking = Lacking()
        self._labelled = True  # whether the target's column is read
        self._sparse = False
        self._own: list[list[str]] | None = None  # every node's columns, once they are known

    @property
    def _known(self) -> list[list[str]]:
        """Every node's own columns: of the first task, or of the model."""
        if self._own is None:
            self._own = self._look(None)
        return self._own

    def _look(self, model: Sequence[tuple[str, ...]] | None) -> list[list[str]]:
        """Every node's columns in the first task; all tasks must have them."""
        nodes, tasks = self.said.nodes, tuple(self.names)
        own: Sequence[tuple[str, ...] | None] = model or [None] * len(nodes)
        found = self._visit([Look(node, tasks, c) for node, c in zip(nodes, own, strict=True)])
        self._sparse = any(one.said["sparse"] for one in found)
        for node, one in zip(nodes, found, strict=True):
            for name in one.said["index"][:1]:
                self.notes.append(
                    f"node {node.name!r}: {one.said['file']}: column {name!r} is an index that "
                    f"pandas has saved, and left out; features bring it back"
                )
        return [one.said["columns"] for one in found]

    @property
    def columns(self) -> list[str]:
        """The columns of the first task (or of the model), ``node/column``."""
        return [
            f"{node.name}{BETWEEN}{name}"
            for node, own in zip(self.said.nodes, self._known, strict=True)
            for name in own
        ]

    @property
    def partition(self) -> list[list[str]]:
        """Which columns are whose, as patterns: those that come later are on their node, too."""
        return [[f"{node.name}{BETWEEN}*"] for node in self.said.nodes]

    @property
    def homes(self) -> tuple[Home, ...]:
        """Where each node keeps its weights; none where the coordinator has them."""
        pairs = zip(self.said.homes, self.said.nodes, strict=False)
        return tuple(Home(home, node.name) for home, node in pairs)

    def of_model(self, model: LinearModel) -> NodeStream:
        """The same for a model that is trained: every task has its columns and no others. What a
        node does not have of them is missing (NaN), where the model fills missing values."""
        self.missing = "keep" if model.missing == "mean" else "refuse"
        nodes = tuple(replace(node, missing=self.missing) for node in self.said.nodes)
        self.said = replace(self.said, nodes=nodes)
        names = model.state_.schema.names or ("",)
        by_node: dict[str, list[str]] = {node.name: [] for node in self.said.nodes}
        for name in names:
            node, between, own = name.partition(BETWEEN)
            if not between or node not in by_node:
                raise StreamError(f"{self.stream}: no node has a column {name!r}, the model has")
            by_node[node].append(own)
        for node, columns in by_node.items():
            if not columns:
                raise StreamError(f"{self.stream}: the model has no column of node {node!r}")
        self._own, self.growing = list(by_node.values()), False
        self._look([tuple(own) for own in self._own])
        return self

    def for_prediction(self, tasks: Sequence[str] | None = None) -> NodeStream:
        """The same without the target's column, which what is to be predicted may not have; of
        some tasks alone."""
        self._labelled = False
        for name in tasks or ():
            if name not in self.names:
                raise StreamError(f"{self.stream}: no task {name!r} beside the target")
        self.names = list(tasks or self.names)
        return self

    def check(self) -> None:
        """Refuse files without the columns they should have, before anything is learnt."""
        assert self._known
        self._centrally(Targets(self.said.target, self.target, self.weight))

    @property
    def lacked(self) -> list[str]:
        """How many rows were filled or left out so far, for a person."""
        return self._lacking.said([node.name for node in self.said.nodes])

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        tasks = f"{counted(len(self), 'task')}, {self.names[0]!r} to {self.names[-1]!r}"
        nodes = counted(len(self.said.nodes), "node")
        return f"NodeStream({str(self.stream)!r}: {tasks}; {nodes}, {len(self.columns)} columns)"

    def __iter__(self) -> Iterator[Task]:
        return (self.task(i) for i in range(len(self)))

    def task(self, i: int) -> Task:
        """Task number i: its target is read, and every node has said which rows it has."""
        name = self.names[i]
        target = self._target(name)
        found = self._match(name, target)
        gone = [one.arrays["lacking"] for one in found]
        self._refuse_none(name, len(target.y), found)
        whole = len(target.y)
        if any(len(lacking) for lacking in gone):
            if self.rows == "common":
                stay = np.setdiff1d(np.arange(len(target.y)), np.concatenate(gone))
                if not len(stay):
                    raise StreamError(f"task {name}: no row is on all nodes")
                target = target.only(stay)
            elif self.missing == "refuse":
                self._refuse(name, len(target.y), found)
        self._lacking.note(name, whole, gone, whole - len(target.y))
        nodes = zip(self.said.nodes, found, strict=True)
        parts = [Part(node, tuple(one.said["columns"])) for node, one in nodes]
        X = NodeColumns(name, parts, target.keys, len(target.y), self.network.visit)
        X.files = tuple((one.said["file"], one.said["sum"]) for one in found)
        X.homes, X.sparse = self.homes, self._sparse
        if self._sparse:
            X.nnz = sum(one.said["stored"] or 0 for one in found)
        self._warn_of_absent(found)
        return Task(X, target.y, name=name, sample_weight=target.weights)

    def _target(self, name: str) -> _Target:
        column = self.target if self._labelled else None
        asked = Targets(self.said.target, column, self.weight, name, self.salt)
        said, arrays = self._centrally(asked)
        y = arrays["y"] if "y" in arrays else np.array(said.get("y") or np.zeros(said["rows"]))
        keys = None
        if self.said.target.key:
            values = np.array(said["keys"]) if self.salt is None else arrays["keys"]
            keys = Keys(tuple(said["kinds"]), self.salt, values)
        weights = arrays["weight"].astype(float) if "weight" in arrays else None
        return _Target(y, weights, keys)

    def _match(self, task: str, target: _Target) -> list[Answer]:
        """What every node has of a task."""
        nodes = zip(self.said.nodes, self._known, strict=True)
        rest = self.growing, target.keys, len(target.y)
        return self._visit([Match(node, task, tuple(own), *rest) for node, own in nodes])

    def _refuse(self, task: str, n_rows: int, found: Sequence[Answer]) -> None:
        """Rows that a node does not have, with the first of their keys."""
        node, one = next(
            (node, one)
            for node, one in zip(self.said.nodes, found, strict=True)
            if len(one.arrays["lacking"])
        )
        places = one.arrays["lacking"].tolist()
        first = self._keys_of(task, places[:SHOWN])
        more = ", ..." if len(places) > SHOWN else ""
        raise StreamError(
            f"node {node.name!r}: {one.said['file']}: {len(places)} of the {n_rows} rows are "
            f"missing, with the keys {first}{more}; missing='mean' fills them, rows='common' "
            f"leaves them out on all nodes"
        )

    def _refuse_none(self, task: str, n_rows: int, found: Sequence[Answer]) -> None:
        """A node that has none of a task's rows has nothing to say of it: keys that differ, most
        likely, which nothing that fills or leaves out rows should hide."""
        for node, one in zip(self.said.nodes, found, strict=True):
            if len(one.arrays["lacking"]) == n_rows:
                raise StreamError(
                    f"node {node.name!r}: {one.said['file']}: has none of the {n_rows} rows, such "
                    f"as {self._keys_of(task, [0])}{one.said['strange']}"
                )

    def _keys_of(self, task: str, places: Sequence[int]) -> str:
        """The target's keys of some rows, as people know them."""
        return str(self._centrally(Rows(self.said.target, task, tuple(places))).said["first"])

    def _warn_of_absent(self, found: Sequence[Answer]) -> None:
        """A model that fills what is missing also fills whole columns; that may not be meant."""
        if self.growing:
            return
        for node, own, one in zip(self.said.nodes, self._known, found, strict=True):
            there = set(one.said["columns"])
            absent = [name for name in own if name not in there]
            if absent:
                warn_of_absent(f"node {node.name!r}: {one.said['file']}", absent, own)

    def key_columns(self, task: Task) -> dict[str, Array]:
        """The key of a task's rows, by column: to put beside predictions."""
        if not self.said.target.key:
            return {}
        name = str(task.name)
        columns = self._centrally(Rows(self.said.target, name)).said["columns"]
        whole = {name: np.array(values) for name, values in columns.items()}
        if self.rows == "common":
            raw = self._target(name)
            assert raw.keys is not None and task.X.keys is not None
            stay = raw.keys.order(task.X.keys) >= 0
            whole = {key: values[stay] for key, values in whole.items()}
        return whole

    def mark(self, task: Task, names: Sequence[str], partition: Partition) -> int:
        """Of a task's columns, as the nodes read them; ``names`` had the stream by then."""
        errands: list[Errand] = []
        for k, which in enumerate(partition.first(len(names))):
            part = task.X.parts[k]
            own = tuple(names[j].partition(BETWEEN)[2] for j in which)
            errands.append(Known(part.files, k, str(task.name), own, task.X.keys, task.X.n_rows))
        return sum(one.said["mark"] for one in self._visit(errands))

    def changed(self, task: Task, mark: Mark) -> str:
        """Which node's file is not the one that was learnt, for a message; none is known: nothing
        is said."""
        for node, (file, now), then in zip(self.said.nodes, task.X.files, mark.files, strict=False):
            if now != then:
                return f" (node {node.name!r}: {file} has changed)"
        return ""

    def let_go(self, model: LinearModel, before: Any) -> None:
        """Let the nodes drop what they kept of an earlier state, and the model needs no more."""
        if before is not None and self.said.homes:
            self.drop(self.tokens(model, before), model)

    def drop(self, tokens: Sequence[set[str]], model: LinearModel) -> None:
        """Let each node drop what it finds by its tokens, but for what the model needs."""
        gone = zip(self.said.nodes, self.homes, tokens, self.tokens(model), strict=True)
        self._visit([Drop(node, home, tuple(then - now)) for node, home, then, now in gone])

    def tokens(self, model: LinearModel, state: Any = None) -> list[set[str]]:
        """By which each node finds what it keeps of a model, or of a state it was in."""
        state = model.state_ if state is None else state
        found: list[set[str]] = [set() for _ in self.said.nodes]
        for own, kept in zip(found, model.node_states(state), strict=False):
            own |= {token_of(kept) or ""} - {""}
        return found

    def _visit(self, errands: Sequence[Errand]) -> list[Answer]:
        return all_of(self.network.visit(errands))

    def _centrally(self, errand: Errand) -> Answer:
        return opened(self.network.centrally(errand))
