"""A stream that a TOML file describes: the target, the key, and every node's own files.

    key = ["time"]                       # rows are matched by it; none: they are in the same order
    task_column = "month"                # one table each, and this column says which task; none:
                                         # one file a task, matched by its name
    keep_weights = "nodes"               # or "coordinator", as is usual
    home = "/var/lib/conche"             # where a node keeps its weights then, on its own machine

    [target]
    files = "/data/target"               # a folder or a pattern, where the coordinator is
    column = "pm25"
    weight = "trust"                     # what each sample counts for; none: one

    [nodes.north]
    files = "/data/north/*.parquet"      # on the machine of this node
    features = ["temp*", "wind"]         # or drop = [...]; names or patterns
    categories = ["wind"]                # as on the command line; so are dates and separator
    worker = "rack1"                     # where this node has to be; none: anywhere

What `key`, `task_column`, `home`, `categories`, `dates` and `separator` say at the top holds for
every node, and for the target, that does not say otherwise. Paths are absolute, or taken from the
folder of the TOML file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..common.words import did_you_mean
from ..errors import ConcheError, StreamError
from .node_columns import BETWEEN
from .node_files import NodeFiles
from .tables import Reading

SHARED = ("key", "task_column", "categories", "dates", "separator")
TOP = (*SHARED, "keep_weights", "home", "target", "nodes")
TARGET = (*SHARED, "files", "column", "weight")
NODE = (*SHARED, "files", "features", "drop", "worker", "home")
KEEPERS = ("coordinator", "nodes")


def is_description(stream: str) -> bool:
    """Whether a stream is a TOML file that says which node reads which files."""
    return stream.lower().endswith(".toml")


@dataclass(frozen=True)
class StreamFile:
    """What the file says."""

    path: str
    target: NodeFiles
    column: str
    weight: str | None
    nodes: tuple[NodeFiles, ...]
    workers: tuple[str | None, ...]  # where each node has to be
    homes: tuple[str, ...]  # where each keeps its weights; none: with the coordinator

    @classmethod
    def parse(cls, text: str, path: str, missing: str = "refuse") -> StreamFile:
        """From TOML; ``path`` is where it was, and ``missing`` as for `NodeFiles`."""
        try:
            whole = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise StreamError(f"{path}: is not TOML ({error})") from None
        try:
            return _parsed(whole, path, missing)
        except ConcheError as error:
            raise StreamError(f"{path}: {error}") from None


def _parsed(whole: Mapping[str, Any], path: str, missing: str) -> StreamFile:
    _check_names(whole, TOP, "")
    target = _table(whole, "target")
    _check_names(target, TARGET, "[target] ")
    folder = Path(path).parent.absolute()
    tables = _table(whole, "nodes")
    if not tables:
        raise StreamError("[nodes]: there is none; [nodes.NAME] describes one")
    nodes, workers, homes = [], [], []
    for name, table in tables.items():
        where = f"[nodes.{name}] "
        if not isinstance(table, dict):
            raise StreamError(f"{where}must be a table")
        if not name or any(sign in name for sign in f"*?[]{BETWEEN}\\\0") or name in (".", ".."):
            raise StreamError(f"node {name!r}: a name must not have any of * ? [ ] {BETWEEN} \\")
        _check_names(table, NODE, where)
        files = _files(whole, table, name, folder, where)
        if len(files.key) != len(_list(whole, target, "key", "[target] ")):
            raise StreamError(f"{where}key: as many columns as the target's key has, please")
        nodes.append(replace(files, missing=missing))
        workers.append(_text(table, "worker", where))
        homes.append(_text(table, "home", where) or _text(whole, "home", ""))
    own = _files(whole, target, "target", folder, "[target] ")
    column = _text(target, "column", "[target] ")
    if column is None:
        raise StreamError("[target] column: is missing; it says what is to be learnt")
    weight = _text(target, "weight", "[target] ")
    for other, what in ((weight, "weight"), (own.task_column, "task_column")):
        if other == column:
            raise StreamError(f"[target] {column!r} is the column and the {what}")
    if column in own.key:
        raise StreamError(f"[target] {column!r} is the column and the key")
    kept = _homes(whole, [node.name for node in nodes], homes, folder)
    return StreamFile(path, own, column, weight, tuple(nodes), tuple(workers), kept)


def _files(
    whole: Mapping[str, Any], table: Mapping[str, Any], name: str, folder: Path, where: str
) -> NodeFiles:
    files = _text(table, "files", where)
    if not files:
        raise StreamError(f"{where}files: is missing; it is a folder or a pattern")
    separator = _text(table, "separator", where) or _text(whole, "separator", "") or ","
    try:
        reading = Reading(
            {"tab": "\t"}.get(separator, separator),
            _list(whole, table, "categories", where),
            _text(table, "dates", where) or _text(whole, "dates", ""),
        )
    except ConcheError as error:
        raise StreamError(f"{where}{error}") from None
    features = _list({}, table, "features", where) if "features" in table else None
    return NodeFiles(
        name,
        str(folder / files),
        features,
        _list({}, table, "drop", where),
        _list(whole, table, "key", where),
        _text(table, "task_column", where) or _text(whole, "task_column", ""),
        reading=reading,
    )


def _homes(
    whole: Mapping[str, Any], names: list[str], homes: list[str | None], folder: Path
) -> tuple[str, ...]:
    keeper = _text(whole, "keep_weights", "") or "coordinator"
    if keeper not in KEEPERS:
        raise StreamError(f"keep_weights = {keeper!r} must be {' or '.join(map(repr, KEEPERS))}")
    if keeper == "coordinator":
        return ()
    for name, home in zip(names, homes, strict=True):
        if home is None:
            raise StreamError(
                f"[nodes.{name}] home: is missing; with keep_weights = 'nodes' it is the folder "
                f"that the node keeps its weights in"
            )
    return tuple(str(folder / str(home)) for home in homes)


def _table(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = whole.get(name)
    if not isinstance(table, dict):
        raise StreamError(f"[{name}]: is missing" if table is None else f"[{name}] must be a table")
    return table


def _check_names(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise StreamError(f"{where}{name!r} means nothing here{near}")


def _text(table: Mapping[str, Any], name: str, where: str) -> str | None:
    value = table.get(name)
    if value is not None and not isinstance(value, str):
        raise StreamError(f"{where}{name} = {value!r} must be a text")
    return value


def _list(
    whole: Mapping[str, Any], table: Mapping[str, Any], name: str, where: str
) -> tuple[str, ...]:
    """One text or a list of them; the node's own, or everybody's."""
    value = table.get(name, whole.get(name, []))
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise StreamError(f"{where}{name} = {value!r} must be a text or a list of texts")
    if len(set(value)) < len(value):
        raise StreamError(f"{where}{name} = {value!r} has one of them twice")
    return tuple(value)
