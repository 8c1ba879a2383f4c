"""Solvers as users name them: small objects with `get_params`, checked when a model is fitted.

An option that only one solver has is a parameter of that solver, so that most combinations that
make no sense cannot be written. ``solver="memory"`` is short for ``solver=Memory()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from sklearn.base import BaseEstimator

from ...common.checks import one_of, real, whole
from ...errors import ParameterError
from ..partition import Partition
from .base import Solver
from .damped import DampedSolver
from .elastic_net import ElasticNetSolver
from .exact import ExactSolver
from .inexact import InexactSolver
from .memory import MemorySolver, default_rank
from .strengths import Strengths

Damping = float | Literal["auto"] | None


class SolverOption(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn ships no types
    """What a node does with its block, as a user says it."""

    @abstractmethod
    def solver(self, partition: Partition, seed: int) -> Solver[Any]:
        """The solver for columns split this way; refuses parameters that cannot be."""


class Exact(SolverOption):
    """Algorithm 1: every node finds the minimum-norm solution for its own columns.

    Parameters
    ----------
    local_steps : instead of factorising its block, a node takes this many conjugate-gradient steps
        towards that solution in a round.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor(n_nodes=4, solver=conche.Exact(local_steps=5))
    CoCoARegressor(n_nodes=4, solver=Exact(local_steps=5))
    """

    def __init__(self, local_steps: int | None = None):
        self.local_steps = local_steps

    def solver(self, partition: Partition, seed: int) -> Solver[Any]:
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
    """

    def __init__(self, damping: Damping = None, local_steps: int | None = None):
        self.damping = damping
        self.local_steps = local_steps

    def solver(self, partition: Partition, seed: int) -> Solver[Any]:
        """The brake as given, or all strengths of it."""
        if _is_auto(self.damping):
            return Strengths(_inexact(DampedSolver(), self.local_steps))
        return _inexact(DampedSolver(_damping(self.damping)), self.local_steps)


class Memory(SolverOption):
    """The Conche method: every past task is kept as curvature, none of its samples.

    Parameters
    ----------
    rank : directions of the past that the nodes share; 0 keeps every block's own curvature alone.
        None: twice the number of columns, within 256 and 600 (one node of up to 4096 columns: 0,
        because it has its exact curvature).
    damping : the ridge lambda that the stream starts with. None: every column has its own, which
        depends on neither its unit nor its origin. ``"auto"``: as in `Damped`.
    discount : the weight of the past per task; 1 never forgets.

    Examples
    --------
    >>> import conche
    >>> conche.ConcheRegressor(n_nodes=4, solver=conche.Memory(rank=300, discount=0.99))
    ConcheRegressor(n_nodes=4, solver=Memory(discount=0.99, rank=300))
    """

    def __init__(self, rank: int | None = None, damping: Damping = None, discount: float = 1.0):
        self.rank = rank
        self.damping = damping
        self.discount = discount

    def solver(self, partition: Partition, seed: int) -> Solver[Any]:
        """Curvature with the ridge as given, or all strengths of it."""
        rank = None if self.rank is None else whole("rank", self.rank, least=0, most=1e9)
        if rank is None:
            rank = default_rank(partition.n_features, len(partition))
        auto = _is_auto(self.damping)
        base = MemorySolver(
            rank,
            None if auto else _damping(self.damping),
            real("discount", self.discount, most=1.0),
            seed,
        )
        return Strengths(base) if auto else base


class ElasticNet(SolverOption):
    """Weights with zeros: an elastic net over nodes and tasks, as scikit-learn's ``ElasticNet``.

    Parameters
    ----------
    alpha : the strength of the penalty; a number above 0.
    l1_ratio : the share of the L1 penalty in it.
    """

    def __init__(self, alpha: float, l1_ratio: float = 0.5):
        self.alpha = alpha
        self.l1_ratio = l1_ratio

    def solver(self, partition: Partition, seed: int) -> Solver[Any]:
        """Coordinate descent on every node."""
        alpha = real("alpha", self.alpha, most=1e100)
        if alpha < 1e-100:
            raise ParameterError(f"alpha={self.alpha!r} must be a number above 0")
        return ElasticNetSolver(alpha, real("l1_ratio", self.l1_ratio, least=1e-6, most=1.0))


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
        if solver == "elastic-net" and "alpha" not in parameters:
            raise ParameterError(
                "solver='elastic-net' needs its alpha: give conche.ElasticNet(alpha=...)"
            ) from None
        raise ParameterError(f"solver={solver!r} does not take {', '.join(parameters)}") from None


def _inexact(base: ExactSolver | DampedSolver, local_steps: Any) -> Solver[Any]:
    return base if local_steps is None else InexactSolver(base, whole("local_steps", local_steps))


def _is_auto(damping: Any) -> bool:
    return isinstance(damping, str) and damping == "auto"


def _damping(value: Any) -> float | None:
    return None if value is None else real("damping", value)
