"""How nodes talk: one small protocol, and one class for each way of carrying it."""

from typing import cast

from ..nodes import Setup
from ..nodes.solvers.base import Meeting
from .base import CentralNetwork, Coefficients, ForgottenError, Lost, Network, Placed
from .device import Boundary, DeviceNetwork
from .elastic_net import CandidateNetwork
from .graph import Graph
from .local import LocalNetwork
from .pooled import PooledNetwork
from .principal import PrincipalNetwork

__all__ = [
    "CentralNetwork",
    "Coefficients",
    "DeviceNetwork",
    "ForgottenError",
    "Graph",
    "LocalNetwork",
    "Lost",
    "Network",
    "Placed",
    "meet",
]

MEETINGS = {
    Meeting.POOL: PooledNetwork,
    Meeting.CANDIDATES: CandidateNetwork,
    Meeting.PRINCIPAL: PrincipalNetwork,
}


def meet(network: Network, setup: Setup) -> Network:
    """The network as the solver's coordinator uses it, seen from this side of a device."""
    around = MEETINGS.get(setup.solver.meeting)
    met = network if around is None else around(cast(CentralNetwork, network))
    if isinstance(network, DeviceNetwork):
        return Boundary(cast(CentralNetwork, met), network.device)
    return met
