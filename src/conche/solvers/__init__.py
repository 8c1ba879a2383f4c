"""What one node does with its block: exact, damped, inexact, memory, sparse."""

from .auto import Auto
from .base import Context, Memory, Solver, Subproblem
from .damped import Damped
from .exact import Exact
from .inexact import Inexact
from .memory import Curvature, default_sketch_size
from .sparse import Sparse

__all__ = [
    "Auto",
    "Context",
    "Curvature",
    "Damped",
    "Exact",
    "Inexact",
    "Memory",
    "Solver",
    "Sparse",
    "Subproblem",
    "default_sketch_size",
]
