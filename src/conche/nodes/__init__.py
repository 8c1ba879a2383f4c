"""What lives on one node: its columns, what it does to them first, its weights, its solver."""

from .node import PLAIN, Node, NodeState, Opening, Position, Proposal, Setup, Start
from .partition import Partition
from .scaling import Scaling

__all__ = [
    "PLAIN",
    "Node",
    "NodeState",
    "Opening",
    "Partition",
    "Position",
    "Proposal",
    "Scaling",
    "Setup",
    "Start",
]
