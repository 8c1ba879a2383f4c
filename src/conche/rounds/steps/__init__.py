"""How the coordinator turns proposals into a move: one object per kind of steps."""

from __future__ import annotations

from typing import Any

from ...common.checks import one_of
from ...errors import ParameterError
from ...network import Network
from ...nodes.solvers import Solver
from .adaptive import Adaptive
from .base import Problem, Standing, Steps
from .conjugate import ConjugateGradients
from .elastic_net import ElasticNetLine, ElasticNetNewton, ElasticNetSafe
from .gossip import Gossip
from .safe import Safe

STEPS = ("safe", "adaptive", "cg")  # as users name them
KINDS: dict[str, type[Steps[Any, Any]]] = {
    "safe": Safe,
    "adaptive": Adaptive,
    "cg": ConjugateGradients,
    "elastic-net safe": ElasticNetSafe,
    "elastic-net adaptive": ElasticNetLine,
    "elastic-net newton": ElasticNetNewton,
    "gossip": Gossip,
}

__all__ = ["STEPS", "Problem", "Standing", "Steps", "choose_steps"]


def choose_steps(
    asked: str, solver: Solver[Any], network: Network, tol: float | None = None
) -> Steps[Any, Any]:
    """The kind of steps that a user asked for, for proposals of this solver on this network."""
    one_of("steps", asked, STEPS)
    kind = network.kind_of_steps(solver.kind_of_steps(asked))
    if kind not in KINDS:
        raise ParameterError(
            f"steps={asked!r} is not for plain rounds of an elastic net (rank=0), whose proposals "
            f"are not linear: use 'safe' or 'adaptive'"
        )
    return KINDS[kind](tol)
