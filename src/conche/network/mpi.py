"""One node a rank: every rank runs the same program and holds one block.

    mpiexec -n 4 conche train months/ --target pm25 --nodes 4 --network mpi --out model.conche

Sums are one ``Allreduce`` of a buffer each; nothing is ever pickled. All ranks get the same bits,
so all take the same decisions. What may fail on one rank alone (reading, factorising, remembering)
ends with a word between the ranks: a failure is raised on all of them, with its message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from threadpoolctl import threadpool_limits

from ..common.arrays import Array, here
from ..common.extras import need
from ..common.launch import end_all
from ..errors import NetworkError, NodeError, ParameterError
from ..nodes import PLAIN, Node, NodeState, Opening, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from .base import EXPECTED, CentralNetwork, Coefficients, Each, Placed, coefficients, share
from .mpi_watch import watch_of

T = TypeVar("T")


class MPINetwork(CentralNetwork):
    """One rank a node.

    Parameters
    ----------
    comm : an mpi4py communicator of exactly as many ranks as there are nodes; None: the world.
    timeout : where some rank has not come after so many seconds while others wait for it, the job
        ends and says which.

    Of the nodes' states every rank holds its own: what stands for all of them is a tuple of one.
    """

    apart = True

    def __init__(self, comm: Any = None, timeout: float = 600.0):
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ParameterError(f"timeout={timeout!r} must be a number of seconds above 0")
        if comm is None:
            comm = need("mpi4py.MPI", "mpi", "network='mpi'").COMM_WORLD
        self.comm, self.rank = comm, int(comm.Get_rank())
        guard()
        self.node: Node | None = None
        self.timeout = timeout
        self._shared, self._place = False, 0  # its number among the ranks of its machine
        self._watch: AbstractContextManager[Any] = nullcontext()

    def start(self, setup: Setup) -> None:
        size, K = self.comm.Get_size(), len(setup.partition)
        if size != K:
            raise ParameterError(
                f"{size} MPI rank(s) for {K} nodes: start with mpiexec -n {K}, of the MPI that "
                f"mpi4py was built for"
            )
        if not self._shared:  # a collective call: once, because `start` may run on a single rank
            self._place = _share_cores(self.comm)
            self._shared = True
            if size > 1 and _mpi().Query_thread() == _mpi().THREAD_MULTIPLE:
                self._watch = watch_of(self.comm, self.timeout, end_all)
        self.setup, self.node = setup, node_of(setup, self.rank, self._place)

    def place(self, states: Sequence[NodeState]) -> Placed:
        return (states[self.rank],)

    def fetch(self, placed: Placed) -> list[NodeState]:
        """All nodes' states on every rank, as bytes on the wire."""
        own = placed[0].moved(here).to_arrays()
        arrays = {k: np.ascontiguousarray(a) for k, a in own.items()}
        own = np.frombuffer(to_bytes(arrays), "u1")
        return [NodeState.from_arrays(from_bytes(part.tobytes())) for part in self._gather(own)]

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        self._check_same(X.shape)
        setup, node = self._started()
        files = isinstance(X, Columns)
        opening = self._together(
            lambda: node.begin(setup.partition.block(X, self.rank), placed[0], start, files)
        )
        mark = self._sum(np.array([opening.mark]))[0] if files else 0
        return Opening(self._sum(opening.predictions), self._sum(opening.report), int(mark))

    def factorise(self, context: Context) -> None:
        _, node = self._started()
        self._together(lambda: node.factorise(context))

    def propose(self, g: Array) -> Proposal:
        """One buffer: the image, and below it the scalars of every output, if any."""
        _, node = self._started()
        image, scalars = node.propose(g)
        values = scalars.values()
        if not values:
            return Proposal(self._sum(image), scalars)
        whole = self._sum(np.concatenate([image.astype(float), np.array(values)]))
        rows = len(image)
        return Proposal(whole[:rows].astype(image.dtype), type(scalars)(*whole[rows:]))

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        _, node = self._started()
        asked = Each.of((question, *about), self.rank)
        own = np.ascontiguousarray(self._together(lambda: node.ask(*asked)))
        shapes = self._gather(np.array(own.shape, dtype=np.int64))
        answers = zip(self._gather(own.ravel()), shapes, strict=True)
        return [flat.reshape(shape) for flat, shape in answers]

    def total(self, question: str, *about: Any) -> Array:
        _, node = self._started()
        asked = Each.of((question, *about), self.rank)
        return self._sum(self._together(lambda: node.ask(*asked)))

    def move(self, each: Sequence[Array]) -> None:
        _, node = self._started()
        node.move(each[self.rank])

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        _, node = self._started()
        node.accept(step, momentum)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        setup, node = self._started()
        state = self._together(lambda: node.end(curvature))
        own = share(setup.scaling, state, node.reach(state))
        node.forget()
        outputs = own.weights.shape[1]
        weights = self._gather(np.ascontiguousarray(own.weights).ravel())
        offsets, reaches = self._gather(own.offset), self._gather(own.reach)
        means: list[Any] = [None] * len(weights)
        if own.means is not None:
            means = list(self._gather(np.ascontiguousarray(own.means)))
        shares = [
            Coefficients(part.reshape(-1, outputs), offset, mean, reach)
            for part, offset, mean, reach in zip(weights, offsets, means, reaches, strict=True)
        ]
        return coefficients(setup, shares), (state,)

    def abandon(self) -> None:
        if self.node is not None:
            self.node.forget()

    def writes_files(self) -> bool:
        """All ranks save a model, and the first one writes."""
        return self.rank == 0

    def _started(self) -> tuple[Setup, Node]:
        if self.setup is None or self.node is None:
            raise NetworkError("the network has not been started")
        return self.setup, self.node

    def _check_same(self, shape: tuple[int, ...]) -> None:
        """Sums of vectors of different lengths would end in MPI's own words, or in none."""
        all_shapes = np.array(self._gather(np.array(shape, dtype=np.int64)))
        if np.any(all_shapes != all_shapes[0]):
            told = ", ".join(f"{n} x {p}" for n, p in all_shapes.tolist())
            raise NodeError(f"the ranks have tasks of different shapes: {told}")

    def _sum(self, array: Array) -> Array:
        own = np.ascontiguousarray(array)
        total = np.empty_like(own)
        with self._watch:
            self.comm.Allreduce(own, total)
        return total

    def _gather(self, own: Array) -> list[Array]:
        """Every rank's flat array, on every rank."""
        counts = np.empty(self.comm.Get_size(), dtype=np.int64)
        with self._watch:
            self.comm.Allgather(np.array([own.size], dtype=np.int64), counts)
        whole = np.empty(int(counts.sum()), dtype=own.dtype)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        with self._watch:
            self.comm.Allgatherv(own, [whole, counts, starts, _mpi_type(own.dtype)])
        return np.split(whole, np.cumsum(counts)[:-1])

    def _together(self, call: Callable[[], T]) -> T:
        """Run on every rank; if it fails on one, all of them raise what the first one says."""
        answer: Any = None
        failure: Exception | None = None
        try:
            answer = call()
        except Exception as error:
            failure = error
        size = self.comm.Get_size()
        worst = np.array([size if failure is None else self.rank])
        first = np.empty_like(worst)
        with self._watch:
            self.comm.Allreduce(worst, first, op=_mpi().MIN)
        if first[0] == size:
            return cast(T, answer)
        told = "" if failure is None else f"node {self.rank}: {failure}"
        text = self._gather(np.frombuffer(told.encode(), "u1"))[int(first[0])]
        if failure is not None and not isinstance(failure, EXPECTED):
            raise failure  # a bug: with its own traceback
        raise NodeError(text.tobytes().decode())


def _mpi_type(dtype: Any) -> Any:
    from mpi4py.util.dtlib import from_numpy_dtype

    return from_numpy_dtype(dtype)


def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def _share_cores(comm: Any) -> int:
    """Ranks of one machine share its cores; each with all of them would fight. Answers which of
    them this one is, so that they share its GPUs too."""
    near = comm.Split_type(_mpi().COMM_TYPE_SHARED)
    threadpool_limits(max(1, (os.cpu_count() or 1) // near.Get_size()), user_api="blas")
    place = int(near.Get_rank())
    near.Free()
    return place


def guard() -> None:
    """From here on an error that nobody catches on one rank ends all of them, after it is told;
    without it, the others would wait for that rank in a sum for ever."""
    if getattr(sys.excepthook, "ends_all", False):
        return
    tell = sys.excepthook

    def told(*error: Any) -> None:
        tell(*error)
        end_all(1)

    told.ends_all = True  # type: ignore[attr-defined]  # a mark for the next call
    sys.excepthook = told
