"""Names and patterns of columns: which are meant, and which node holds them."""

from __future__ import annotations

import fnmatch
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import StreamError
from .tables import unreadable


def matching(pattern: str, places: Mapping[str, int]) -> list[str]:
    """The columns that a name or a pattern (``*``, ``?``, ``[abc]``) means, in their order.

    A plain name is looked up, so that a list of all names takes time in proportion to them.

    Examples
    --------
    >>> matching("a*", {"b": 0, "a2": 1, "a1": 2}), matching("b", {"b": 0}), matching("c", {"b": 0})
    (['a2', 'a1'], ['b'], [])
    """
    found: list[str] = []
    if any(sign in pattern for sign in "*?["):
        found = [name for name in places if fnmatch.fnmatchcase(name, pattern)]
    return found or [pattern] * (pattern in places)


def read_groups(
    path: str | Path,
    columns: Sequence[str],
    means: Callable[[str], str] = lambda name: name,
) -> dict[str, list[str]]:
    """Which node holds which columns, from a JSON or TOML file.

    Parameters
    ----------
    path : the file: names of nodes, each with a list of names (or patterns) of its columns. What is
        no column yet may come in a later task, and a node join with it.
    columns : of the stream's first task; every one must belong to exactly one node.
    means : what a name stands for, where columns stand for another one (`FileStream.meant`).

    Returns
    -------
    For every node its names and patterns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "nodes.json"
    ...     _ = file.write_text('{"north": ["n*"], "south": ["s1"]}')
    ...     read_groups(file, ["n1", "s1", "n2"])
    {'north': ['n*'], 'south': ['s1']}
    """
    try:
        text = Path(path).read_text()
        groups = tomllib.loads(text) if str(path).endswith(".toml") else json.loads(text)
    except (OSError, ValueError) as error:
        raise unreadable(Path(path), error) from None
    if not isinstance(groups, dict) or not groups:
        raise StreamError(f"{path}: expected nodes, each with a list of its columns")
    places = {name: j for j, name in enumerate(columns)}
    owner: dict[str, str] = {}
    for node, patterns in groups.items():
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            raise StreamError(f"{path}: node {node!r} needs a list of column names")
        if not patterns:
            raise StreamError(f"{path}: node {node!r} has no columns")
        for pattern in map(means, patterns):
            for name in matching(pattern, places):
                if owner.get(name, node) != node:
                    both = f"node {owner[name]!r} and on {node!r}"
                    raise StreamError(f"{path}: column {name!r} is on {both}")
                owner[name] = node
    for name in columns:
        if name not in owner:
            raise StreamError(f"{path}: column {name!r} is on no node")
    return {node: [means(pattern) for pattern in own] for node, own in groups.items()}
