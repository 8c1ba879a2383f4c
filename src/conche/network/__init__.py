"""How nodes talk: one small protocol, and one class for each way of carrying it."""

from .base import CentralNetwork, Coefficients, Network, Placed
from .graph import Graph
from .local import LocalNetwork

__all__ = ["CentralNetwork", "Coefficients", "Graph", "LocalNetwork", "Network", "Placed"]
