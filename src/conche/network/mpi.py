"""A rank holds one node or several: every rank runs the same program on its own blocks.

    mpiexec -n 4 conche train months/ --target pm25 --nodes 12 --network mpi --out model.conche

Sums are one ``Allreduce`` of a buffer each; nothing is ever pickled. All ranks get the same bits,
so all take the same decisions. What may fail on one rank alone (reading, factorising, remembering)
ends with a word between the ranks: a failure is raised on all of them, with its message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import numpy as np

from ..common.arrays import Array
from ..common.extras import need
from ..common.launch import end_all, launched_size
from ..errors import NetworkError, NodeError, ParameterError
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from ..tasks.errands import Errand
from .base import EXPECTED, CentralNetwork, Coefficients, Each, Placed, coefficients
from .host import Host
from .mpi_arrays import bytes_of_state, packed, state_of, unpacked
from .mpi_job import guard, mpi_module, mpi_type, share_cores
from .mpi_watch import watch_of
from .placement import Placement, Workers, checked, on_ranks, settled
from .secure import Sums, Veil, Veiled, check_count, check_secure, without_sums
from .words import Scales

T = TypeVar("T")
SOME = ("means", "units")  # of a node's share, that it may not have


class MPINetwork(CentralNetwork):
    """Ranks that share the nodes.

    Parameters
    ----------
    comm : an mpi4py communicator of at most as many ranks as there are nodes; None: the world.
    workers : for every node, the number of its rank, or the name of its worker: workers are the
        ranks in the order in which they are first named. None: nodes are spread evenly.
    secure : whether ranks are to see sums over ranks alone (docs/security.md).
    timeout : where some rank has not come after so many seconds while others wait for it, the job
        ends and says which.

    Of the nodes' states every rank holds its own: what stands for all of them is a tuple of those.
    """

    apart = True

    def __init__(
        self,
        comm: Any = None,
        timeout: float = 600.0,
        workers: Workers = None,
        secure: bool = False,
    ):
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ParameterError(f"timeout={timeout!r} must be a number of seconds above 0")
        if comm is None:
            comm = need("mpi4py.MPI", "mpi", "network='mpi'").COMM_WORLD
        self.comm, self.rank = comm, int(comm.Get_rank())
        guard()
        self.workers, self.secure = checked(workers), check_secure(secure)
        self._veil: Veil | None = None  # made with the first start
        self._sums, self._rounds = Sums(), 0
        self.host: Host | None = None
        self.timeout = timeout
        self._shared, self._threads = False, 1  # that this rank may use
        self._place = 0  # its number among the ranks of its machine
        self._watch: AbstractContextManager[Any] = nullcontext()

    def start(self, setup: Setup) -> None:
        self._spread(len(setup.partition))
        self.check_sums(setup)
        nodes = [node_of(setup, k, self._place) for k in self.own]
        self.host = Host(nodes, self._threads, apart=True)
        self.setup = setup

    def settle(self, n_nodes: int, workers: Sequence[str | None] = ()) -> None:
        self.workers = settled(self.workers, on_ranks(workers, self.comm.Get_size()))
        self._spread(n_nodes)

    def visit(self, errands: Sequence[Errand]) -> list[bytes]:
        own = self._together(lambda: [errands[k].run() for k in self.own])
        every = self._gather_each([np.frombuffer(answer, "u1") for answer in own])
        return [answer.tobytes() for answer in every]

    def centrally(self, errand: Errand) -> bytes:
        """On the first rank; all get the answer."""
        own = self._together(lambda: b"" if self.rank else errand.run())
        return self._gather(np.frombuffer(own, "u1"))[0].tobytes()

    def _spread(self, K: int) -> None:
        """Decide which of the nodes are this rank's."""
        size = self.comm.Get_size()
        if size > K:
            raise ParameterError(f"{size} MPI ranks for {K} node(s): start at most {K}")
        if size == 1 < K and (launched_size() or 1) > 1:
            raise ParameterError(
                f"{launched_size()} processes were started, and each finds itself alone: start "
                f"them with the mpiexec of the MPI that mpi4py was built for"
            )
        self.placement = Placement.of(self.workers or size, K)
        names = self.placement.names
        by_number = all(isinstance(name, int) for name in names)
        if len(names) != size or (by_number and names != tuple(range(size))):
            told = ", ".join(map(str, names))
            raise ParameterError(f"{size} MPI rank(s) for {len(self.placement)} workers: {told}")
        self.own = self.placement.nodes[self.rank]
        if self.secure:
            check_count(size)
            self._sums.forget()
        if not self._shared:  # a collective call: once, because `start` may run on a single rank
            self._threads, self._place = share_cores(self.comm)
            self._shared = True
            if size > 1 and mpi_module().Query_thread() == mpi_module().THREAD_MULTIPLE:
                self._watch = watch_of(self.comm, self.timeout, end_all)
            if self.secure:
                veil = Veil()
                publics = self._gather(np.frombuffer(veil.public(), "u1"))
                veil.meet([public.tobytes() for public in publics])
                self._veil = veil

    def place(self, states: Sequence[NodeState]) -> Placed:
        return tuple(states[k] for k in self.own)

    def fetch(self, placed: Placed) -> list[NodeState]:
        """All nodes' states on every rank, as bytes on the wire."""
        return [state_of(raw) for raw in self._gather_each([bytes_of_state(s) for s in placed])]

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        self._check_same(X.shape)
        self._rounds = 0
        setup, host = self._started()
        blocks = setup.partition.parts(X, self.own)
        opening = self._together(lambda: host.begin(blocks, placed, start))
        if self._veil is not None:
            return cast(Opening, self._hidden("begin", opening))
        mark = self._sum(np.array([opening.mark]))[0] if isinstance(X, Columns) else 0
        return Opening(self._sum(opening.predictions), self._sum(opening.report), int(mark))

    def factorise(self, context: Context) -> None:
        _, host = self._started()
        self._together(lambda: host.factorise(context))

    def propose(self, g: Array) -> Proposal:
        """One buffer: the image, and below it the scalars of every output, if any."""
        _, host = self._started()
        image, scalars = proposal = host.propose(g)
        if self._veil is not None:
            self._rounds += 1
            name, before = (f"round {self._rounds - ago}" for ago in (0, 1))
            return cast(Proposal, self._hidden(name, proposal, g, before))
        values = scalars.values()
        if not values:
            return Proposal(self._sum(image), scalars)
        whole = self._sum(np.concatenate([image.astype(float), np.array(values)]))
        rows = len(image)
        return Proposal(whole[:rows].astype(image.dtype), type(scalars)(*whole[rows:]))

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        if self._veil is not None:
            raise NetworkError(f"secure sums: {question!r} is no question to single nodes")
        _, host = self._started()
        asked = Each.some((question, *about), self.own)
        return self._gather_each(self._together(lambda: host.ask(*asked)))

    def total(self, question: str | Each, *about: Any) -> Array:
        answer = self._answered("total", 0.0, question, *about)
        if self._veil is not None:
            return cast(Array, self._hidden(f"total {question}", answer))
        return self._sum(answer)

    def largest(self, question: str | Each, *about: Any) -> Array:
        answer, veil = self._answered("largest", -np.inf, question, *about), self._veil
        if veil is None:
            return self._sum(answer, mpi_module().MAX)

        def ask(level: int, known: Sequence[int]) -> Veiled:
            own = veil.digits(self._sums.next_message(), level, known, answer)
            return own._replace(words=self._sum(own.words))

        return self._sums.largest(ask)

    def _hidden(self, name: str, answer: Any, about: Array | None = None, before: str = "") -> Any:
        """The sum of all ranks' answers, of which none is sent without its mask."""
        veil = self._veil
        assert veil is not None

        def ask(scales: Scales | None) -> Veiled:
            own = veil.sent(self._sums.next_message(), scales, answer)
            return own._replace(words=self._sum(own.words))

        return self._sums.total(name, ask, about, before)

    def _answered(self, how: str, nothing: float, question: str | Each, *about: Any) -> Array:
        """What the nodes here answer together; where none is asked, ``nothing``, as large as what
        others answer."""
        _, host = self._started()
        asked = Each.some((question, *about), self.own)
        answer: Array | None = self._together(lambda: getattr(host, how)(*asked))
        if isinstance(question, Each):
            own = () if answer is None else (ord(answer.dtype.char), *answer.shape)
            kinds = self._gather(np.array(own, dtype=np.int64))
            if answer is None:
                kind, *shape = max(kinds, key=len).tolist()
                answer = np.full(shape, nothing, dtype=chr(kind))
        assert answer is not None
        return answer

    def move(self, each: Sequence[Array]) -> None:
        _, host = self._started()
        host.move([each[k] for k in self.own])

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        _, host = self._started()
        host.accept(step, momentum)

    def hosts(self, asked: Sequence[bool] | None = None) -> int:
        return self.placement.hosts(asked)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        setup, host = self._started()
        own, states = self._together(lambda: host.end(curvature))
        host.forget()
        sums: list[Array] | None = None
        if self._veil is not None:
            own, sums = without_sums(own)
            sums = cast(list[Array], self._hidden("end", sums))
        weights, offsets, reaches = (
            self._gather_each([getattr(one, name) for one in own])
            for name in ("weights", "offset", "reach")
        )
        means, units = (self._gather_some([getattr(one, name) for one in own]) for name in SOME)
        shares = map(Coefficients, weights, offsets, means, reaches, units)
        whole = coefficients(setup, list(shares))
        if sums is not None:
            whole = whole._replace(offset=sums[0], reach=sums[1])
        return whole, tuple(states)

    def abandon(self) -> None:
        if self.host is not None:
            self.host.forget()

    def writes_files(self) -> bool:
        """All ranks save a model, and the first one writes."""
        return self.rank == 0

    def _started(self) -> tuple[Setup, Host]:
        if self.setup is None or self.host is None:
            raise NetworkError("the network has not been started")
        return self.setup, self.host

    def _check_same(self, shape: tuple[int, ...]) -> None:
        """Sums of vectors of different lengths would end in MPI's own words, or in none."""
        all_shapes = np.array(self._gather(np.array(shape, dtype=np.int64)))
        if np.any(all_shapes != all_shapes[0]):
            told = ", ".join(f"{n} x {p}" for n, p in all_shapes.tolist())
            raise NodeError(f"the ranks have tasks of different shapes: {told}")

    def _sum(self, array: Array, op: Any = None) -> Array:
        """Of all ranks' arrays: their sum, or what another operation makes of them."""
        own = np.ascontiguousarray(array)
        total = np.empty_like(own)
        with self._watch:
            self.comm.Allreduce(own, total, **({} if op is None else {"op": op}))
        return total

    def _gather_each(self, own: Sequence[Array]) -> list[Array]:
        """One array of every node, in the nodes' order, on every rank."""
        head, raw = packed(own)
        parts = zip(self._gather(head), self._gather(raw), strict=True)
        return self.placement.in_order([unpacked(head, raw) for head, raw in parts])

    def _gather_some(self, own: Sequence[Array | None]) -> list[Any]:
        """The same of what all nodes have, or none of them."""
        if own[0] is None:
            return [None] * sum(map(len, self.placement.nodes))
        return list(self._gather_each([part for part in own if part is not None]))

    def _gather(self, own: Array) -> list[Array]:
        """Every rank's flat array, on every rank."""
        counts = np.empty(self.comm.Get_size(), dtype=np.int64)
        with self._watch:
            self.comm.Allgather(np.array([own.size], dtype=np.int64), counts)
        whole = np.empty(int(counts.sum()), dtype=own.dtype)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        with self._watch:
            self.comm.Allgatherv(own, [whole, counts, starts, mpi_type(own.dtype)])
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
            self.comm.Allreduce(worst, first, op=mpi_module().MIN)
        if first[0] == size:
            return cast(T, answer)
        told = str(failure) if isinstance(failure, NodeError) else f"rank {self.rank}: {failure}"
        told = "" if failure is None else told
        text = self._gather(np.frombuffer(told.encode(), "u1"))[int(first[0])]
        if failure is not None and not isinstance(failure, EXPECTED):
            raise failure  # a bug: with its own traceback
        raise NodeError(text.tobytes().decode())
