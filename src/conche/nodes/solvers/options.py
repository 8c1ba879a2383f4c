"""Solvers as users name them: small objects with `get_params`, checked when a model is fitted.

An option that only one solver has is a parameter of that solver, so that most combinations that
make no sense cannot be written. ``solver="memory"`` is short for ``solver=Memory()``.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ...common.checks import one_of, real, whole
from ...common.words import size
from ...errors import ParameterError
from ...memory import DISCOUNTS
from .base import Solver
from .candidates import CandidateSolver
from .damped import DampedSolver
from .elastic_net import ElasticNetSolver
from .exact import ExactSolver
from .inexact import InexactSolver
from .lossless import Lossless
from .pooled import PooledMemory
from .principal import PrincipalMemory

LOSSLESS = 10_000  # columns up to which nothing is lost by default: sums of 0.8 GB
LOSSLESS_ON_GPU = 30_000
LOSSLESS_OTHERWISE = 2048  # of sparse columns, or with another loss: directions are cheaper beyond
BEYOND = 2048  # directions for more columns than that
MOST_NUMBERS = 1 << 26  # of all directions together: 512 MB
SPARSE_NUMBERS = 5 << 19  # the same for sparse columns, which take little themselves: 20 MB

MOST_FOR_AUTO = 4000  # columns whose sums are kept four times over, for discount="auto"

Discount = float | Literal["auto"]
LocalSteps = int | Literal["auto"] | None


class About(NamedTuple):
    """What is known of a stream when its solver is made."""

    n_columns: int  # that it begins with
    seed: int = 0
    central: bool = True  # whether nodes have a centre
    sparse: bool = False
    quadratic: bool = True  # whether the loss is
    on_gpu: bool = False
    secure: bool = False  # whether the coordinator is to see sums over nodes alone
    scaled: bool = True  # whether columns are standardised in some way


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

    @abstractmethod
    def solver(self, about: About) -> Solver[Any]:
        """The solver for a stream; refuses parameters that cannot be."""


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

    def solver(self, about: About) -> Solver[Any]:
        """Minimum norm, or steps towards it."""
        return _inexact(ExactSolver(), self.local_steps)


class Damped(SolverOption):
    """Algorithm 1 with a brake, for real data: (K A_k^T A_k + mu n I) Delta = A_k^T (y - v).

    Parameters
    ----------
    damping : mu. None: ten times the columns' mean variance, so that their unit does not matter.
    local_steps : as in `Exact`.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor(n_nodes=4, solver=conche.Damped(damping=10.0))
    CoCoARegressor(n_nodes=4, solver=Damped(damping=10.0))
    """

    def __init__(self, damping: float | None = None, local_steps: LocalSteps = None):
        self.damping = damping
        self.local_steps = local_steps

    def solver(self, about: About) -> Solver[Any]:
        """The brake as given."""
        return _inexact(DampedSolver(_damping(self.damping)), self.local_steps)


class Memory(SolverOption):
    """The Conche method: every past task is kept as sums of products, none of its rows.

    Parameters
    ----------
    rank : principal directions of the past that are kept. Up to that many columns nothing is lost,
        and the model is the ridge solution of all rows after every task, for any number of nodes; a
        stream that began so stays so when more columns come.
        None: lossless up to 10,000 columns (30,000 on a GPU; 2048 where they are sparse or the loss
        is logistic), 2048 beyond, fewer where they would take more than 512 MB over all nodes
        (20 MB where columns are sparse). 0: every block's own curvature alone, as on a `Graph`.
    ridge : a number r adds r |w|^2 to the squared errors of all rows, w the weights of columns as
        ``scaling`` has them: without scaling what scikit-learn's ``Ridge(alpha=r)`` finds, with
        ``scaling="standard"`` what ``StandardScaler`` and it find. It is used as it is given, or
        refused. None: every target has its own, the likeliest on standardised columns (by evidence
        from all rows; `ridge_`), classes share one. Beyond the rank eight strengths of it learn
        side by side, 0.02 to 512 times the columns' variance: the likeliest is the model as long as
        nothing is lost, later the one that has predicted every task best before it was learnt.
    discount : the weight of the past per task; 1 never forgets. ``"auto"``: sums with the weights
        1, 0.97, 0.9 and 0.7 side by side, and the model is of those that have predicted tasks best
        before they were learnt, later tasks counting for more; up to 4,000 columns.

    Examples
    --------
    >>> import conche
    >>> conche.ConcheRegressor(n_nodes=4, solver=conche.Memory(rank=300, discount=0.99))
    ConcheRegressor(n_nodes=4, solver=Memory(discount=0.99, rank=300))
    """

    def __init__(
        self, rank: int | None = None, ridge: float | None = None, discount: Discount = 1.0
    ):
        self.rank = rank
        self.ridge = ridge
        self.discount = discount

    def solver(self, about: About) -> Solver[Any]:
        """Lossless where all columns fit the rank, principal directions otherwise."""
        p, sparse = about.n_columns, about.sparse
        rank = None if self.rank is None else whole("rank", self.rank, least=0, most=1e9)
        if not about.central and rank:
            raise ParameterError(
                f"rank={rank} needs a centre that merges: on a Graph it is 0, the blocks alone"
            )
        if rank is None:
            rank = default_rank(about) if about.central else 0
        ridge = None if self.ridge is None else real("ridge", self.ridge)
        auto = _is_auto(self.discount)
        discounts: tuple[float, ...] = DISCOUNTS
        if not auto:
            discounts = (real("discount", self.discount, most=1.0, beside="'auto'"),)
        if p <= rank and about.quadratic:
            if auto and p > MOST_FOR_AUTO:
                raise ParameterError(
                    f"discount='auto' keeps {len(DISCOUNTS)} sums, {size(32 * p * p)} for {p:,} "
                    f"columns, and is for up to {MOST_FOR_AUTO:,}; give a number"
                )
            return Lossless(ridge, discounts, about.seed, about.scaled or ridge is None)
        if auto:
            why = "there are more columns than rank" if about.quadratic else "the loss is logistic"
            raise ParameterError(
                f"discount='auto' needs sums of all columns, and {why}; give a number"
            )
        if p <= rank and not about.secure:
            return PooledMemory(ridge, discounts, about.seed)
        known = (rank, sparse and rank > 0, about.secure)
        return PrincipalMemory(ridge, discounts, about.seed, *known)


def default_rank(about: About) -> int:
    """The rule behind ``rank=None``.

    >>> [default_rank(About(p)) for p in (500, 10_000, 20_000, 100_000)]
    [500, 10000, 2048, 671]
    >>> [default_rank(About(p, sparse=True)) for p in (500, 5000, 40_000)]
    [500, 524, 65]
    """
    p = about.n_columns
    most = LOSSLESS_ON_GPU if about.on_gpu else LOSSLESS
    if p <= (LOSSLESS_OTHERWISE if about.sparse or not about.quadratic else most):
        return p
    if about.sparse:
        return min(BEYOND, max(SPARSE_NUMBERS // p, 1))
    return min(BEYOND, MOST_NUMBERS // p)


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

    on_devices = False  # coordinate descent goes from one column to the next

    def __init__(self, alpha: float | str = "auto", l1_ratio: float = 0.5, rank: int | None = None):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.rank = rank

    def solver(self, about: About) -> Solver[Any]:
        """Of all tasks, by a coordinator that nodes offer columns; or every node's own."""
        alpha = None
        if not _is_auto(self.alpha):
            alpha = real("alpha", self.alpha, least=1e-100, most=1e100, beside="'auto'")
        l1_ratio = real("l1_ratio", self.l1_ratio, least=1e-6, most=1.0)
        rank = LOSSLESS_OTHERWISE
        if self.rank is not None:
            rank = whole("rank", self.rank, least=0, most=1e9)
        if rank and about.secure:
            raise ParameterError(
                "an elastic net's nodes offer the coordinator columns: secure sums are for rank=0"
            )
        if not rank or not about.central:
            if alpha is None:
                raise ParameterError("alpha='auto' needs a rank above 0, and a centre")
            return ElasticNetSolver(alpha, l1_ratio)
        return CandidateSolver(alpha, l1_ratio, rank, about.seed)


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
