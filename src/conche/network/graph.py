"""Nodes without a centre: each talks to its neighbours on a graph, and messages may get lost.

Every node has its own estimate of all predictions. An exchange replaces it by a weighted average
with the neighbours' (Metropolis's weights), which leaves the mean over the nodes as it was. Where
messages may be lost that mean must not drift: what has flowed over an edge is kept by one of its
ends as a running total, and the total is what is sent. A message that is lost is made up for by the
next that arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..common.arrays import Array
from ..common.checks import one_of, whole
from ..errors import ParameterError
from ..nodes import PLAIN, Opening, Proposal, Setup, Start
from .base import Coefficients, Placed, total_opening
from .local import InProcess

KINDS = ("complete", "ring", "grid", "regular")
UNHEARD = 3  # additions to what has flowed over an edge before the other end must have heard
Edge = tuple[int, int]


class Graph(InProcess):
    """``network=Graph("ring")``: which nodes are neighbours.

    Parameters
    ----------
    kind : "complete", "ring", "grid" (as square as the number of nodes allows), "regular" (random,
        ``degree`` neighbours each), or a networkx graph with one vertex a node, in its order.
    lost : the fraction of messages that get lost.
    mixing : exchanges with the neighbours in a round.
    degree, seed : of a regular graph; the seed is also that of the messages lost.

    Examples
    --------
    >>> import conche
    >>> task = conche.gaussian_tasks(1, 40, 12, noise_var=0.1)[0]
    >>> model = conche.CoCoARegressor(n_nodes=4, n_rounds=20, network=conche.Graph("ring"))
    >>> model.fit(task.X, task.y).node_predictions_.shape  # every node has its own
    (4, 40, 1)
    """

    central = False

    def __init__(
        self, kind: Any = "ring", lost: float = 0.0, mixing: int = 1, degree: int = 4, seed: int = 0
    ):
        super().__init__(n_threads=1)
        if not (hasattr(kind, "edges") and hasattr(kind, "nodes")):
            one_of("kind", kind, KINDS, beside="a networkx graph")
        if isinstance(lost, bool) or not isinstance(lost, int | float) or not 0 <= lost < 1:
            raise ParameterError(f"lost={lost!r} must be a number of at least 0 and below 1")
        self.kind, self.lost, self.mixing = kind, float(lost), whole("mixing", mixing)
        self.degree, self.seed = whole("degree", degree, least=2), whole("seed", seed, least=0)
        self._own: list[Array] = []
        self._flows: dict[Edge, tuple[Array, Array, int]] = {}

    def __repr__(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else f"{len(self.kind.nodes)} vertices"
        more = f"lost={self.lost}, mixing={self.mixing}, degree={self.degree}, seed={self.seed}"
        return f"Graph({kind!r}, {more})"

    def kind_of_steps(self, asked: str) -> str:
        """Neighbours average; there is no centre to choose another step than 1/K."""
        if asked.startswith("elastic-net"):
            raise ParameterError("solver='elastic-net' is not for a Graph")
        if asked != "safe":
            raise ParameterError(
                f"steps={asked!r}: a Graph has no centre to choose steps; use steps='safe'"
            )
        return "gossip"

    def topology(self) -> str:
        """All that decides who hears whom; of a given graph, its edges."""
        return repr(self) if isinstance(self.kind, str) else f"{self!r} {list(self.kind.edges)}"

    def start(self, setup: Setup) -> None:
        K = len(setup.partition)
        self.setup = None  # a start that is interrupted has not happened
        self.edges = edges(self.kind, K, self.degree, self.seed)
        self.weights = metropolis(self.edges, K)
        super().start(setup)

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        openings = self.openings(X, placed, start)
        self._own = [opening.predictions for opening in openings]
        self._flows = {}
        self._rng = np.random.default_rng([self.seed, 1])
        return total_opening(openings)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        ended = super().end(curvature)
        self._own, self._flows = [], {}  # the task's data may go
        return ended

    def abandon(self) -> None:
        super().abandon()
        self._own, self._flows = [], {}

    def own_predictions(self) -> list[Array]:
        """A_k w_k of every node, as the task began."""
        return self._own

    def propose_each(self, g: Sequence[Array]) -> list[Proposal]:
        """Every node's proposal for a direction of its own."""
        pairs = zip(self.host.nodes, g, strict=True)
        return [node.propose(direction) for node, direction in pairs]

    def exchange(self, V: Array, own: Array) -> Array:
        """The nodes' estimates after ``mixing`` exchanges; ``own`` is what each puts in itself."""
        for _ in range(self.mixing):
            W = self.weights.astype(V.dtype)
            V = self._lossy(V, own, W) if self.lost else np.tensordot(W, V, axes=1)
        return V

    def _lossy(self, V: Array, own: Array, W: Array) -> Array:
        """Of an edge (i, j), i keeps the total that has flowed from i to j, and j the last total
        that it has heard of; j tells i its estimate and which total that was, i answers with the
        new one. What j has not heard of may grow a few times and no more: it arrives at once."""
        heard = self._rng.random((len(self.edges), 2)) >= self.lost
        nothing = np.zeros_like(V[0])
        for (i, j), (up, down) in zip(self.edges, heard, strict=True):
            sent, known, unheard = self._flows.get((i, j), (nothing, nothing, 0))
            if up and unheard < UNHEARD:
                sent, unheard = sent + W[i, j] * (V[i] - V[j]), unheard + 1
            if up and down:
                known, unheard = sent, 0
            self._flows[i, j] = (sent, known, unheard)
        mixed = own.copy()
        for (i, j), (sent, known, _) in self._flows.items():
            mixed[i] -= sent
            mixed[j] += known
        return mixed

    def message_count(self) -> int:
        """Vectors that travel in a round: one each way over every edge, an exchange."""
        return 2 * len(self.edges) * self.mixing


def edges(kind: Any, K: int, degree: int = 4, seed: int = 0) -> list[Edge]:
    """Pairs (i, j), i < j, of a connected graph on K nodes."""
    if not isinstance(kind, str):
        pairs = _given(kind, K)
    elif kind == "complete":
        pairs = {(i, j) for j in range(K) for i in range(j)}
    elif kind == "ring":
        pairs = {(min(i, (i + 1) % K), max(i, (i + 1) % K)) for i in range(K) if K > 1}
    elif kind == "grid":
        width = next(w for w in range(int(np.sqrt(K)), 0, -1) if K % w == 0)
        right = {(i, i + 1) for i in range(K) if (i + 1) % width}
        pairs = right | {(i, i + width) for i in range(K - width)}
    else:
        pairs = _regular(K, degree, seed)
    if not _connected(pairs, K):
        raise ParameterError(f"the graph does not connect all {K} nodes")
    return sorted(pairs)


def _given(graph: Any, K: int) -> set[Edge]:
    place = {vertex: k for k, vertex in enumerate(graph.nodes)}
    if len(place) != K:
        raise ParameterError(f"the graph has {len(place)} vertices, the network {K} nodes")
    for a, b, *_ in graph.edges:
        if a not in place or b not in place:
            raise ParameterError(f"the graph has an edge ({a!r}, {b!r}) between unknown vertices")
    pairs = [sorted((place[a], place[b])) for a, b, *_ in graph.edges]
    return {(i, j) for i, j in pairs if i != j}


def _regular(K: int, degree: int, seed: int) -> set[Edge]:
    """A random graph whose nodes have ``degree`` neighbours each, by random matching."""
    if not 2 <= degree < K or K * degree % 2:
        raise ParameterError(f"no regular graph of degree {degree} on {K} nodes")
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        pairs = _matched(K, degree, rng)
        if pairs is not None and _connected(pairs, K):
            return pairs
    raise ParameterError(f"found no connected regular graph of degree {degree} on {K} nodes")


def _matched(K: int, degree: int, rng: np.random.Generator) -> set[Edge] | None:
    """Pair up free ends at random; those that would repeat an edge are drawn again."""
    free = np.repeat(np.arange(K), degree)
    pairs: set[Edge] = set()
    while len(free):
        rng.shuffle(free)
        left = []
        for i, j in free.reshape(-1, 2).tolist():
            edge = (min(i, j), max(i, j))
            if i == j or edge in pairs:
                left += [i, j]
            else:
                pairs.add(edge)
        if len(left) == len(free):
            return None
        free = np.array(left, dtype=int)
    return pairs


def _connected(pairs: set[Edge], K: int) -> bool:
    ends = np.array(sorted(pairs), dtype=int).reshape(-1, 2).T
    adjacency = sparse.coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(K, K))
    return bool(connected_components(adjacency, directed=False, return_labels=False) == 1)


def metropolis(pairs: Sequence[Edge], K: int) -> Array:
    """Metropolis's weights: symmetric, rows sum to one; 1/K each on a complete graph."""
    degree = np.bincount(np.array(pairs, dtype=int).ravel(), minlength=K)
    W = np.zeros((K, K))
    for i, j in pairs:
        W[i, j] = W[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return W + np.diag(1 - W.sum(axis=1))
