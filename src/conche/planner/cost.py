"""Seconds of a task: counted work and messages times what they cost, as measured.

The costs are of two cores of one machine (`python -m benchmarks.plan` measures them again, and how
far predictions are from what training takes). They are scaled to the machine at hand by the time
that one product takes here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..common.arrays import Array
from ..common.checks import one_of, real
from ..common.threads import blas_threads
from ..errors import ParameterError
from ..network.cut import OVERSAMPLING
from ..nodes.solvers.principal_block import WIDEST_BLOCK
from ..nodes.solvers.probes import PROBES
from .traffic import DOUBLE, Stream

# seconds: a task, a node, a node's output; an entry of X, in an output; a row of a node of several
# columns, in an output of any node; a product in X^T X, in a factor; an entry of what is kept
COSTS = np.array(
    [1.7e-3, 2.3e-4, 6.3e-5, 1.8e-8, 3.4e-9, 1.8e-7, 1.3e-8, 1.4e-11, 1.24e-11, 8.3e-9]
)
PRODUCT = 6.5e-11  # multiply and add, in products of limited memory
ROUND = 3e-4, 1.2e-4  # a round, and each of its nodes
MERGE = 5e-3, 1.5e-3  # merging, and what was lost: a task, and each of its nodes
EIGEN = 2.8e-10  # of m^3, for m eigenvectors
REFERENCE = 7.6e-4  # seconds of the product below, where all this was measured
SIZE = 256


@dataclass(frozen=True)
class Wire:
    """What carries the messages: seconds for a node to be asked and to answer, and a byte's."""

    name: str
    latency: float
    per_byte: float
    in_turn: bool  # the coordinator serves one node after the other
    apart: bool = True


WIRES = {
    "local": Wire("local", 0.0, 0.0, in_turn=True, apart=False),
    "ray": Wire("ray", 1.7e-3, 2.0e-9, in_turn=True),
    "mpi": Wire("mpi", 1.0e-5, 0.5e-9, in_turn=False),
}


def wire(
    network: str = "local", bandwidth: float | None = None, latency: float | None = None
) -> Wire:
    """A network by name; ``bandwidth`` (MB/s) and ``latency`` (ms) instead of what was measured on
    one machine."""
    known = WIRES[one_of("network", network, WIRES)]
    if not known.apart and not (bandwidth is None and latency is None):
        raise ParameterError("bandwidth and latency are for network='ray' or 'mpi'")
    per_byte = known.per_byte
    if bandwidth is not None:
        per_byte = 1e-6 / real("bandwidth", bandwidth, 1e-9)
    wait = known.latency if latency is None else 1e-3 * real("latency", latency)
    return Wire(known.name, wait, per_byte, known.in_turn, known.apart)


def seconds(stream: Stream, carried: Wire, rounds: int = 1) -> float:
    """Of the stream's last task, with the Conche method."""
    work = float(COSTS @ _pooled(stream) if stream.lossless else _limited(stream, rounds))
    K, entries = len(stream.columns), stream.n * sum(stream.columns)
    asked, sent = stream.exchanges(rounds), stream.sent(rounds)
    return work * slowness() + messages(carried, K, asked, sent, entries)


def one_round_seconds(columns: list[int], n: int, carried: Wire) -> float:
    """Of a task of Algorithm 1: every node factorises its block, and one round."""
    K, p = len(columns), np.array(columns, dtype=float)
    small, large = np.minimum(p, n), np.maximum(p, n)
    base = np.array([1, K, K, n * p.sum(), n * p.sum(), n * K, n * K])
    work = COSTS[:7] @ base + COSTS[7] * np.sum(2 * large * small**2 + small**3)
    return float(work) * slowness() + messages(carried, K, 3, 2 * DOUBLE * n * K, n * int(p.sum()))


def messages(carried: Wire, K: int, exchanges: int, sent: int, entries: int) -> float:
    """Of a task's messages, and of handing every node its columns, where it is elsewhere."""
    if not carried.apart:
        return 0.0
    turns = K + 1 if carried.in_turn else 1 + np.log2(K)
    return float(exchanges * turns * carried.latency + (sent + DOUBLE * entries) * carried.per_byte)


@cache
def slowness() -> float:
    """How many times as long as on the reference a product takes on this machine, now."""
    A = np.ones((SIZE, SIZE))
    took = []
    with blas_threads(1):
        for _ in range(6):
            clock = time.perf_counter()
            A @ A
            took.append(time.perf_counter() - clock)
    return float(np.clip(min(took) / REFERENCE, 0.1, 20.0))


def _base(stream: Stream) -> list[float]:
    n, P, K, S = stream.n, sum(stream.widths), len(stream.columns), stream.side_by_side
    several = sum(width > 1 for width in stream.widths)
    return [1, K, K * S, n * P, n * P * S, n * several, n * K * S]


def _pooled(stream: Stream) -> Array:
    """What a task of lossless memory amounts to, in the order of `COSTS`."""
    n, P, S = float(stream.n), float(sum(stream.widths)), stream.side_by_side
    return np.array([*_base(stream), n * P**2, S * P**3, P**2])


def _limited(stream: Stream, rounds: int) -> float:
    """Seconds of a task of limited memory, on the reference."""
    widths = np.array(stream.widths, dtype=float)
    n, P, S, m = stream.n, widths.sum(), stream.side_by_side, stream.rank
    rows = float(n + min(m, stream.before))
    blocks = np.minimum(widths, float(WIDEST_BLOCK))
    cube, square = float(np.sum(blocks**3)), float(np.sum(blocks**2))
    base = float(COSTS[:7] @ _base(stream)) + rounds * (ROUND[0] + ROUND[1] * len(widths))
    if not m:
        return base + PRODUCT * (n * square + cube / 3)
    base += MERGE[0] + MERGE[1] * len(widths)
    some = min(rows, float(m + OVERSAMPLING))
    merge = rows**2 * P if rows <= 2 * m else 5 * rows * P * some
    factors = (rows + m) * square + S * (cube / 3 + m * square + m**2 * P)
    each = S * (4 * rows * P + 2 * square + 4 * m * P)
    lost = PROBES * (4 * rows * P + S * (2 * square + 2 * m * P))
    work = merge + factors + rounds * each + lost
    return base + PRODUCT * work + EIGEN * min(some, rows) ** 3
