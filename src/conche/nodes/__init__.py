"""What lives on one node: its columns, what it does to them first, its weights, its solver."""

from .node import Node, NodeState, Opening, Position, Proposal, Setup
from .partition import Partition
from .scaling import Scaling

__all__ = [
    "Node",
    "NodeState",
    "Opening",
    "Partition",
    "Position",
    "Proposal",
    "Scaling",
    "Setup",
]
