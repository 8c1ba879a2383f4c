"""What one node does with its block: exact, damped, inexact, memory, elastic net."""

from .base import Context, Solution, Solver, Subproblem
from .options import SOLVERS, Damped, ElasticNet, Exact, Memory, SolverOption, option

__all__ = [
    "SOLVERS",
    "Context",
    "Damped",
    "ElasticNet",
    "Exact",
    "Memory",
    "Solution",
    "Solver",
    "SolverOption",
    "Subproblem",
    "option",
]
