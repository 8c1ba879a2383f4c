"""How nodes talk."""

from .base import Network
from .graph import Graph
from .local import LocalNetwork

__all__ = ["Graph", "LocalNetwork", "Network"]
