"""Solvers as users name them: small objects with `get_params`, checked when a model is fitted.

An option that only one solver has is a parameter of that solver, so that most combinations that
make no sense cannot be written. ``solver="memory"`` is short for ``solver=Memory()``.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

from ...common.checks import flag, one_of, real, whole
from ...errors import ParameterError
from .base import Solver
from .candidates import CandidateSolver
from .damped import DampedSolver
from .elastic_net import ElasticNetSolver
from .exact import ExactSolver
from .inexact import InexactSolver
from .mixed import MixedMemory
from .pooled import PooledMemory
from .principal import PrincipalMemory
from .strengths import STRENGTHS, Strengths

LOSSLESS = 2048  # columns up to which nothing is lost by default: a matrix of 32 MB
BEYOND = 1024  # directions for more columns than that
MOST_NUMBERS = 1 << 25  # of all directions together: 256 MB
SPARSE_NUMBERS = 5 << 19  # the same for sparse columns, which take little themselves: 20 MB

SIDE_BY_SIDE = (1.0, 1e-4, 1e-3, 1e-2, 0.1, 3.0, 10.0, 30.0, 100.0)  # strengths of the ridge
LIMITED_SIDE_BY_SIDE = (1.0, 0.01, 0.1, 3.0, 10.0, 30.0)  # where each costs more
# Where most of it is, a weak ridge forgets more than samples that are left out can tell.
SPARSE_SIDE_BY_SIDE = (1.0, 3.0, 10.0, 30.0, 100.0)

DISCOUNTS: tuple[float, ...] = (1.0, 0.9, 0.7, 0.4, 0.1, 0.0)  # of the past, a task

Damping = float | Literal["auto"] | None
Discount = float | Literal["auto"]
LocalSteps = int | Literal["auto"] | None


class SolverOption(ABC):
    """What a node does with its block, as a user says it.

    It has what scikit-learn asks of an object to clone it and to search over its parameters, but
    not its base class: importing that takes longer than a plan does.
    """

    on_devices: ClassVar[bool] = True  # whether a GPU is of use to it

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                known = ", ".join(self._names())
                raise ValueError(f"Invalid parameter {name!r} for {self}: it has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        known = inspect.signature(type(self)).parameters
        given = self.get_params().items()
        changed = [f"{name}={v!r}" for name, v in given if repr(v) != repr(known[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def by_sums(self) -> SolverOption:
        """The same where the coordinator is to see sums over nodes alone; refused where it needs
        what single nodes send."""
        return self

    @abstractmethod
    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        """The solver for a stream that begins with so many weights, on nodes with a centre or
        without, of sparse columns or not; refuses parameters that cannot be."""


class Exact(SolverOption):
    """Algorithm 1: every node finds the minimum-norm solution for its own columns.

    Parameters
    ----------
    local_steps : instead of factorising its block, a node takes this many conjugate-gradient steps
        towards that solution in a round. ``"auto"``: until a millionth of its gradient is left, so
        that well-conditioned columns take a handful and large blocks are never factorised.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor(n_nodes=4, solver=conche.Exact(local_steps=5))
    CoCoARegressor(n_nodes=4, solver=Exact(local_steps=5))
    """

    def __init__(self, local_steps: LocalSteps = None):
        self.local_steps = local_steps

    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        """Minimum norm, or steps towards it."""
        return _inexact(ExactSolver(), self.local_steps)


class Damped(SolverOption):
    """Algorithm 1 with a brake, for real data: (K A_k^T A_k + mu n I) Delta = A_k^T (y - v).

    Parameters
    ----------
    damping : mu. None: ten times the columns' mean variance, so that their unit does not matter.
        ``"auto"``: five strengths around that learn side by side (five times the messages), and the
        one that has predicted every task best before it was learnt is the model.
    local_steps : as in `Exact`.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor(n_nodes=4, solver=conche.Damped(damping=10.0))
    CoCoARegressor(n_nodes=4, solver=Damped(damping=10.0))
    """

    def __init__(self, damping: Damping = None, local_steps: LocalSteps = None):
        self.damping = damping
        self.local_steps = local_steps

    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        """The brake as given, or all strengths of it."""
        if _is_auto(self.damping):
            return Strengths(_inexact(DampedSolver(), self.local_steps))
        return _inexact(DampedSolver(_damping(self.damping)), self.local_steps)


class Memory(SolverOption):
    """The Conche method: every past task is kept as curvature, none of its samples.

    Parameters
    ----------
    rank : principal directions of the past that are kept. Up to that many columns nothing is lost,
        and the estimate is the offline ridge solution after every task, for any number of nodes; a
        stream that began so stays so when more columns come.
        None: lossless up to 2048 columns, 1024 beyond, fewer where they would take more than
        256 MB over all nodes (20 MB where columns are sparse). 0: every block's own curvature
        alone, as on a `Graph`.
    damping : the ridge lambda that the stream starts with. None: every column has its own, which
        depends on neither its unit nor its origin (sparse columns share one). Nine strengths of it
        (six where memory is limited) learn side by side until two samples a column have been
        seen; then the one that predicts samples best that are left out goes on alone; one weaker
        than the default must be surely better. ``"auto"``: all of them go on for ever.
    discount : the weight of the past per task; 1 never forgets. ``"auto"``: six pasts with weights
        from 1 to 0 learn side by side (six times the work), each predicts every task before it
        learns it, and one that forgets becomes the model once it has been surely better.
    sums : whether the coordinator is to see sums over nodes alone, and never what one node sends,
        rotated or not; networks with secure sums ask for it. The same past and the same estimate;
        more is sent.

    Examples
    --------
    >>> import conche
    >>> conche.ConcheRegressor(n_nodes=4, solver=conche.Memory(rank=300, discount=0.99))
    ConcheRegressor(n_nodes=4, solver=Memory(discount=0.99, rank=300))
    """

    def __init__(
        self,
        rank: int | None = None,
        damping: Damping = None,
        discount: Discount = 1.0,
        sums: bool = False,
    ):
        self.rank = rank
        self.damping = damping
        self.discount = discount
        self.sums = sums

    def by_sums(self) -> Memory:
        """Columns or directions that come together by sums."""
        return Memory(**self.get_params() | {"sums": True})

    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        """Lossless where all columns fit the rank, principal directions otherwise."""
        rank = None if self.rank is None else whole("rank", self.rank, least=0, most=1e9)
        if not central and rank:
            raise ParameterError(
                f"rank={rank} needs a centre that merges: on a Graph it is 0, the blocks alone"
            )
        if rank is None:
            rank = default_rank(n_weights, sparse) if central else 0
        sums = flag("sums", self.sums)
        auto = _is_auto(self.damping)
        damping = None if auto else _damping(self.damping)
        discounts = DISCOUNTS
        if not _is_auto(self.discount):
            discounts = (real("discount", self.discount, most=1.0, beside="'auto'"),)
        each: tuple[float, ...] = (1.0,)
        if auto or damping is None:
            each = side_by_side(n_weights, rank, sparse) if rank else STRENGTHS if auto else each
        if n_weights <= rank:
            lossless = MixedMemory if sums else PooledMemory
            return lossless(damping, discounts, seed, each, not auto)
        known = (rank, sparse and rank > 0, sums)
        return PrincipalMemory(damping, discounts, seed, each, not auto, *known)


def side_by_side(n_weights: int, rank: int, sparse: bool = False) -> tuple[float, ...]:
    """Strengths of the ridge that are tried, the default first."""
    if n_weights <= rank:
        return SIDE_BY_SIDE
    return SPARSE_SIDE_BY_SIDE if sparse else LIMITED_SIDE_BY_SIDE


def default_rank(n_columns: int, sparse: bool = False) -> int:
    """The rule behind ``rank=None``.

    >>> default_rank(500), default_rank(5000), default_rank(100_000)
    (500, 1024, 335)
    >>> default_rank(5000, sparse=True), default_rank(40_000, sparse=True)
    (524, 65)
    """
    if n_columns <= LOSSLESS:
        return n_columns
    if sparse:
        return min(BEYOND, max(SPARSE_NUMBERS // n_columns, 1))
    return min(BEYOND, MOST_NUMBERS // n_columns)


class ElasticNet(SolverOption):
    """Weights with zeros: an elastic net over nodes and tasks, as scikit-learn's ``ElasticNet``, of
    all tasks so far.

    Parameters
    ----------
    alpha : the strength of the penalty; a number above 0. ``"auto"``, the default: nine of them,
        shares of the one that leaves no weight in the first task, falling with the root of the
        number of samples, learn side by side, and the one that has predicted every task best before
        it was learnt is the model (`alpha_`).
    l1_ratio : the share of the L1 penalty in it.
    rank : columns whose past the coordinator keeps. Up to that many columns nothing is lost, and
        the estimate is scikit-learn's on all tasks at once, after every task, for any number of
        nodes. None: 2048. Beyond, columns that come to matter late know their own past, and not
        what they share with others. 0: plain rounds of CoCoA, and nothing is remembered.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor(n_nodes=4, solver=conche.ElasticNet(0.1, l1_ratio=0.9))
    CoCoARegressor(n_nodes=4, solver=ElasticNet(alpha=0.1, l1_ratio=0.9))
    """

    def by_sums(self) -> ElasticNet:
        """Plain rounds alone."""
        if self.rank != 0:
            raise ParameterError(
                "an elastic net's nodes offer the coordinator columns: secure sums are for rank=0"
            )
        return self

    on_devices = False  # coordinate descent goes from one column to the next

    def __init__(self, alpha: float | str = "auto", l1_ratio: float = 0.5, rank: int | None = None):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.rank = rank

    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        """Of all tasks, by a coordinator that nodes offer columns; or every node's own."""
        alpha = None
        if not _is_auto(self.alpha):
            alpha = real("alpha", self.alpha, least=1e-100, most=1e100, beside="'auto'")
        l1_ratio = real("l1_ratio", self.l1_ratio, least=1e-6, most=1.0)
        rank = LOSSLESS if self.rank is None else whole("rank", self.rank, least=0, most=1e9)
        if not rank or not central:
            if alpha is None:
                raise ParameterError("alpha='auto' needs a rank above 0, and a centre")
            return ElasticNetSolver(alpha, l1_ratio)
        return CandidateSolver(alpha, l1_ratio, rank, seed)


SOLVERS: dict[str, type[SolverOption]] = {
    "exact": Exact,
    "damped": Damped,
    "memory": Memory,
    "elastic-net": ElasticNet,
}


def option(solver: Any, **parameters: Any) -> SolverOption:
    """The option object that ``solver`` is, or is the name of; ``parameters`` go to a named one."""
    if isinstance(solver, SolverOption):
        return solver
    one_of("solver", solver, SOLVERS, beside="a solver object such as conche.Memory()")
    try:
        return SOLVERS[solver](**parameters)
    except TypeError:
        raise ParameterError(f"solver={solver!r} does not take {', '.join(parameters)}") from None


def _inexact(base: ExactSolver | DampedSolver, local_steps: Any) -> Solver[Any]:
    if local_steps is None:
        return base
    steps = None if _is_auto(local_steps) else whole("local_steps", local_steps)
    return InexactSolver(base, steps)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _damping(value: Any) -> float | None:
    return None if value is None else real("damping", value)
