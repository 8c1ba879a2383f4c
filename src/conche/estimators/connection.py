"""From what a user says about the network to the network itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ParameterError
from ..network import DeviceNetwork, LocalNetwork, Network


def _mpi() -> Network:
    from ..network.mpi import MPINetwork

    return MPINetwork()


def _ray() -> Network:
    from ..network.ray import RayNetwork

    return RayNetwork()


NETWORKS: dict[str, Callable[[], Network]] = {"local": LocalNetwork, "mpi": _mpi, "ray": _ray}


class Connection(NamedTuple):
    """A live network, and what the user asked for."""

    asked: Any
    network: Network
    device: str = "cpu"


def connect(asked: Any, device: str = "cpu") -> Connection:
    """The network of that name, or the one that is given; on a device of this process, the one that
    keeps all nodes there."""
    if device != "cpu" and (asked == "local" or type(asked) is LocalNetwork):
        return Connection(asked, DeviceNetwork(), device)
    if isinstance(asked, Network):
        return Connection(asked, asked, device)
    if not isinstance(asked, str) or asked not in NETWORKS:
        raise ParameterError(
            f"network={asked!r} must be 'local', 'mpi', 'ray', a Graph or a Network object"
        )
    return Connection(asked, NETWORKS[asked](), device)
