"""Which worker holds which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..common.checks import whole
from ..errors import ParameterError

Name = str | int  # of a worker
Workers = int | Sequence[Name] | None  # how many there are; or, for every node, whose it is


class Placement(NamedTuple):
    """The workers in order: their names, and the numbers of their nodes, which ascend."""

    names: tuple[Name, ...]
    nodes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, workers: Workers, n_nodes: int) -> Placement:
        """One worker a node (None), so many that share the nodes evenly, or as a list says that has
        the worker of every node: a name, or a number.

        >>> Placement.of(2, 5).nodes
        ((0, 1, 2), (3, 4))
        >>> Placement.of(["rack1", "rack2", "rack1"], 3)
        Placement(names=('rack1', 'rack2'), nodes=((0, 2), (1,)))
        """
        if workers is None or isinstance(workers, int):
            many = n_nodes if workers is None else workers
            if many > n_nodes:
                raise ParameterError(f"{many} workers for {n_nodes} nodes: at most one a node")
            parts = np.array_split(np.arange(n_nodes), many)
            return cls(tuple(range(many)), tuple(tuple(part.tolist()) for part in parts))
        if len(workers) != n_nodes:
            raise ParameterError(
                f"workers names those of {len(workers)} nodes: there are {n_nodes}"
            )
        names = tuple(dict.fromkeys(workers))
        if not any(isinstance(name, str) for name in names):
            names = tuple(sorted(names))
        own = (tuple(k for k, worker in enumerate(workers) if worker == name) for name in names)
        return cls(names, tuple(own))

    def __len__(self) -> int:
        return len(self.nodes)

    def hosts(self, asked: Sequence[bool] | None) -> int:
        """How many workers have nodes that are asked; None: all."""
        if asked is None:
            return len(self.nodes)
        return sum(any(asked[k] for k in own) for own in self.nodes)

    def in_order(self, answers: Sequence[Sequence[Any]]) -> list[Any]:
        """What every worker says of its nodes, in the nodes' order."""
        pairs = zip(self.nodes, answers, strict=True)
        found = {k: one for own, each in pairs for k, one in zip(own, each, strict=True)}
        return [found[k] for k in range(len(found))]

    def called(self, w: int) -> str:
        """Worker w, in words."""
        own = self.nodes[w]
        if len(own) == 1:
            return f"node {own[0]}"
        name = self.names[w]
        which = f"worker {name}" if isinstance(name, int) else f"worker {name!r}"
        return f"{which} (nodes {', '.join(map(str, own[:4]))}{', ...' if len(own) > 4 else ''})"


def settled(asked: Workers, workers: Sequence[Name | None]) -> Workers:
    """What was ``asked`` for, or the worker of every node, where a stream says it; a node that may
    be anywhere then has a worker of its own.

    >>> settled(None, ["rack1", None, "rack1"]), settled(3, [None, None, None])
    (('rack1', 1, 'rack1'), 3)
    """
    if all(name is None for name in workers):
        return asked
    named = tuple(k if name is None else name for k, name in enumerate(workers))
    if asked not in (None, named):
        raise ParameterError(f"workers={asked}: the stream itself says where its nodes live")
    return named


def on_ranks(workers: Sequence[str | None], size: int) -> Sequence[str | int | None]:
    """Where each node lives on so many MPI ranks, which are the workers in the order in which they
    are first named: nodes without a worker go to ranks without a name, or else to all in turn.

    >>> on_ranks(["a", None, "b"], 2), on_ranks(["a", None, "b"], 3)
    (('a', 'a', 'b'), (0, 2, 1))
    """
    names = list(dict.fromkeys(name for name in workers if name is not None))
    if not names or None not in workers:
        return workers
    places: Sequence[Name] = names if len(names) >= size else range(size)
    free = count(0 if len(names) >= size else len(names))
    return tuple(
        places[next(free) % len(places)] if name is None else places[names.index(name)]
        for name in workers
    )


def checked(workers: Any) -> Workers:
    """What a user says about workers, refused where it cannot be."""
    if workers is None:
        return None
    if isinstance(workers, str) or not hasattr(workers, "__len__"):
        return whole("workers", workers)
    for name in workers:
        if isinstance(name, bool) or not isinstance(name, str | int) or name in ("", -1):
            raise ParameterError(f"workers: {name!r} is no name or number of a worker")
    return tuple(workers)
