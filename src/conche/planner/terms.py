"""What may be said beside the question: the nodes, the memory, and what carries the messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from ..common.checks import real, whole
from ..errors import ParameterError
from .cost import Wire, wire

LOSS = 0.01  # of the error: what a smaller rank may cost


class Terms(TypedDict, total=False):
    """Keyword arguments of `plan` and `plan_from_tasks`, all optional.

    ``n_nodes``: the number of nodes is given, and Algorithm 1's remedies are looked for.
    ``n_nodes_max``: no more nodes than this. ``rank``: directions that the Conche method keeps
    (None: its default). ``loss``: what a smaller rank may cost, as a share of the error.
    ``network``: "local", "ray" or "mpi"; ``bandwidth`` in MB/s and ``latency`` in ms, where they
    are not those of one machine.
    """

    n_nodes: int | None
    n_nodes_max: int | None
    rank: int | None
    loss: float
    network: str
    bandwidth: float | None
    latency: float | None


@dataclass(frozen=True)
class Wanted:
    """The terms, checked."""

    n_nodes: int | None
    n_nodes_max: int | None
    rank: int | None
    loss: float
    wire: Wire

    @classmethod
    def of(cls, terms: Terms, n_features: int) -> Wanted:
        """Refuses terms that cannot be met."""
        K, most, rank = terms.get("n_nodes"), terms.get("n_nodes_max"), terms.get("rank")
        unknown = set(terms) - set(Terms.__annotations__)
        if unknown:
            raise TypeError(f"plan takes no {min(unknown)!r}")
        K = None if K is None else whole("n_nodes", K, 1, n_features)
        most = None if most is None else whole("n_nodes_max", most)
        if K is not None and most is not None and most < K:
            raise ParameterError(f"n_nodes={K} is more than n_nodes_max={most}")
        return cls(
            K,
            most,
            None if rank is None else whole("rank", rank, least=0, most=1e9),
            real("loss", terms.get("loss", LOSS)),
            wire(terms.get("network", "local"), terms.get("bandwidth"), terms.get("latency")),
        )
