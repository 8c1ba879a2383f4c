"""How nodes talk."""

from .base import Network
from .local import LocalNetwork

__all__ = ["LocalNetwork", "Network"]
