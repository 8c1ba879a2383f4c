"""What one node does with its block: exact, damped, memory."""

from .auto import Auto
from .base import Context, Memory, Solver, Subproblem
from .damped import Damped
from .exact import Exact
from .memory import Curvature, default_sketch_size

__all__ = [
    "Auto",
    "Context",
    "Curvature",
    "Damped",
    "Exact",
    "Memory",
    "Solver",
    "Subproblem",
    "default_sketch_size",
]
