"""One node a rank: every rank runs the same program and holds one block.

    mpiexec -n 4 conche train months/ --target pm25 --nodes 4 --network mpi --out model.conche

Sums are one ``Allreduce`` of a buffer each; nothing is ever pickled. All ranks get the same bits,
so all take the same decisions. What may fail on one rank alone (reading, factorising, remembering)
ends with a word between the ranks: a failure is raised on all of them, with its message.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from threadpoolctl import threadpool_limits

from ..node import Node, Opening, Proposal, State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver
from .base import Estimate, NodeError

T = TypeVar("T")


class MPINetwork:
    """``comm`` is an mpi4py communicator of exactly as many ranks as there are nodes."""

    def __init__(self, comm: Any = None):
        if comm is None:
            try:
                from mpi4py import MPI
            except ImportError as error:
                raise ValueError(
                    f"network='mpi' needs mpi4py: pip install conche[mpi] ({error})"
                ) from error
            comm = MPI.COMM_WORLD
        self.comm, self.rank = comm, int(comm.Get_rank())
        guard()
        self.node: Node | None = None
        self._shared = False

    def start(
        self,
        solver: Solver,
        partition: Partition,
        states: Sequence[State],
        preparation: Preparation | None = None,
    ) -> None:
        if self.comm.Get_size() != len(states):
            raise ValueError(
                f"{self.comm.Get_size()} MPI rank(s) for {len(states)} nodes: start with "
                f"mpiexec -n {len(states)}, of the MPI that mpi4py was built for"
            )
        self.partition, self.preparation = partition, preparation or Preparation()
        self._counts = partition.weight_counts()
        first = partition.intercept and self.rank == 0
        self.node = Node(solver, states[self.rank], self.preparation, first)
        self._ended: State | None = None
        if not self._shared:  # once: it is a word between all ranks, and a start may be one's own
            _share_cores(self.comm)
            self._shared = True

    def begin(self, X: Any) -> Opening:
        node = self._node()
        self._check_same(X.shape)
        opening = self._together(lambda: node.begin(self.partition.block(X, self.rank)))
        return Opening(self._sum(opening.predictions), self._sum(opening.report))

    def prepare(self, context: Context) -> None:
        self._together(lambda: self._node().prepare(context))

    def propose(self, g: Array) -> Proposal:
        """One buffer: the image, and below it the scalars of every output, if any."""
        own = self._node().propose(g)
        if own.scalars is None:
            return Proposal(self._sum(own.image), None)
        total = self._sum(np.concatenate([own.image.astype(float), own.scalars]))
        rows = len(own.image)
        return Proposal(total[:rows].astype(own.image.dtype), total[rows:])

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self._node().accept(step, momentum)

    def end(self, curvature: Array | None = None) -> Estimate:
        self._ended = self._together(lambda: self._node().end(curvature))
        return self._estimate(self._ended)

    def commit(self) -> None:
        assert self._ended is not None
        self._node().install(self._ended)
        self._ended = None

    def abandon(self) -> None:
        self._ended = None
        if self.node is not None:
            self.node.forget_task()

    def states(self) -> list[State]:
        """All nodes' states on every rank, as bytes on the wire."""
        state = self._node().state
        arrays = {"weights": state.weights}
        for kind, kept in (("memory", state.memory), ("numbers", state.numbers)):
            arrays |= {f"{kind}.{key}": array for key, array in kept.items()}
        own = np.frombuffer(to_bytes({k: np.ascontiguousarray(a) for k, a in arrays.items()}), "u1")
        return [_state(from_bytes(part.tobytes())) for part in self._gather(own)]

    def close(self) -> None:
        self.abandon()

    def _estimate(self, state: State) -> Estimate:
        own, offset = self.preparation.outward(state.weights, state.numbers)
        outputs = own.shape[1]
        parts = [p.reshape(-1, outputs) for p in self._gather(np.ascontiguousarray(own).ravel())]
        means = None
        if self.preparation.missing != "refuse":
            means = self.partition.join(self._gather(state.numbers["mean"]), intercept=False)
        return Estimate(self.partition.join(parts), self._sum(offset), means)

    def _check_same(self, shape: tuple[int, ...]) -> None:
        """Sums of vectors of different lengths would end in MPI's own words, or in none."""
        all_shapes = np.array(self._gather(np.array(shape, dtype=np.int64)))
        if np.any(all_shapes != all_shapes[0]):
            told = ", ".join(f"{n} x {p}" for n, p in all_shapes.tolist())
            raise NodeError(f"the ranks have tasks of different shapes: {told}")

    def _node(self) -> Node:
        if self.node is None:
            raise RuntimeError("the network has not been started")
        return self.node

    def _sum(self, array: Array) -> Array:
        own = np.ascontiguousarray(array)
        total = np.empty_like(own)
        self.comm.Allreduce(own, total)
        return total

    def _gather(self, own: Array) -> list[Array]:
        """Every rank's flat array, on every rank."""
        counts = np.empty(self.comm.Get_size(), dtype=np.int64)
        self.comm.Allgather(np.array([own.size], dtype=np.int64), counts)
        whole = np.empty(int(counts.sum()), dtype=own.dtype)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.comm.Allgatherv(own, [whole, counts, starts, _mpi_type(own.dtype)])
        return np.split(whole, np.cumsum(counts)[:-1])

    def _together(self, call: Callable[[], T]) -> T:
        """Run on every rank; if it fails on one, all of them raise what the first one says."""
        answer: Any = None
        said = ""
        try:
            answer = call()
        except Exception as error:
            said = f"node {self.rank}: {error}"
        size = self.comm.Get_size()
        worst = np.array([self.rank if said else size])
        first = np.empty_like(worst)
        self.comm.Allreduce(worst, first, op=_minimum())
        if first[0] == size:
            return cast(T, answer)
        text = self._gather(np.frombuffer(said.encode(), "u1"))[int(first[0])]
        raise NodeError(text.tobytes().decode())


def _state(arrays: dict[str, Array]) -> State:
    def kept(kind: str) -> dict[str, Array]:
        return {k.removeprefix(kind): a for k, a in arrays.items() if k.startswith(kind)}

    return State(arrays["weights"], kept("memory."), kept("numbers."))


def _mpi_type(dtype: Any) -> Any:
    from mpi4py.util.dtlib import from_numpy_dtype

    return from_numpy_dtype(dtype)


def _minimum() -> Any:
    from mpi4py import MPI

    return MPI.MIN


def _share_cores(comm: Any) -> None:
    """Ranks of one machine share its cores; each with all of them would fight."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    threadpool_limits(max(1, (os.cpu_count() or 1) // here.Get_size()), user_api="blas")
    here.Free()


def launched_rank() -> int | None:
    """This process's rank as its launcher told it, before any MPI is imported; None without one."""
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def guard() -> None:
    """From here on an error that nobody catches on one rank ends all of them, after it is told;
    without it, the others would wait for that rank in a sum for ever."""
    if getattr(sys.excepthook, "ends_all", False):
        return
    tell = sys.excepthook

    def told(*error: Any) -> None:
        tell(*error)
        end_all(1)

    told.ends_all = True  # type: ignore[attr-defined]
    sys.excepthook = told


def wait_for_all() -> None:
    """Until every rank of the job, if this is one, is here: the launcher ends a job with its first
    rank that fails, and another may have something to say yet."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        mpi.COMM_WORLD.Barrier()


def end_all(status: int) -> None:
    """End every rank of the job, if this is one; others may be waiting for us in a sum."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.COMM_WORLD.Get_size() > 1:
        sys.stderr.flush()
        time.sleep(0.5)  # the launcher drops what it has not passed on when the job is aborted
        mpi.COMM_WORLD.Abort(status)
