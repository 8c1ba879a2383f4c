"""What the driver holds of things in Ray, and what it gives: states, large arrays, resources."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.extras import need
from ..errors import DeviceError, NetworkError, ParameterError
from ..nodes import NodeState
from . import ray_local
from .base import Each, Placed

LARGE = 100_000  # bytes: a larger vector goes through the object store, once for all nodes
A_LITTLE = 0.001  # of a resource that means a machine: many workers may be there
LOST = "Ray has been shut down, and the nodes' states with it: load the model, or fit it again"


def ray_module() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return need("ray", "ray", "network='ray'")


def session() -> str | None:
    """Which Ray runs now; None where none does. Job numbers alone begin anew with every Ray."""
    ray = ray_module()
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return f"{context.get_node_id()} {context.get_job_id()}"


class Reference(NamedTuple):
    """What stands for the states of one worker's nodes on the driver."""

    states: Any  # an ObjectRef
    session: str | None  # of the Ray that holds them
    nodes: tuple[int, ...]  # whose they are


def sent(x: Any) -> Any:
    """A large array goes through the object store, once for all nodes."""
    if isinstance(x, Each):
        once = {id(part): sent(part) for part in x}
        return Each(once[id(part)] for part in x)
    return ray_module().put(x) if getattr(x, "nbytes", 0) > LARGE else x


def present(placed: Placed) -> list[Any]:
    """The references, if the Ray that holds the states still runs."""
    if placed[0].session is None or placed[0].session != session():
        raise NetworkError(LOST)
    return [reference.states for reference in placed]


def own(state: NodeState) -> NodeState:
    """The state in memory of our own: Ray's arrays are read-only and go with Ray."""
    return NodeState.from_arrays({k: np.array(a) for k, a in state.to_arrays().items()})


def named_resources(names: Sequence[str | int]) -> list[dict[str, float]]:
    """What of Ray's resources each worker needs to be on the machine that its name means; on this
    machine alone names say no more than who shares a worker."""
    if os.environ.get(ray_local.ALONE) == "0" or not any(isinstance(name, str) for name in names):
        return [{} for _ in names]
    there = ray_module().cluster_resources()
    for name in names:
        if isinstance(name, str) and name not in there:
            raise ParameterError(
                f"worker {name!r}: no machine of the cluster has a resource of that name; start it "
                f"with ray start --resources '{{\"{name}\": 1}}'"
            )
    return [{name: A_LITTLE} if isinstance(name, str) else {} for name in names]


def share_of_gpus(resources: dict[str, Any], device: str, n_workers: int) -> dict[str, float]:
    """What an actor is given of GPUs beside its resources, where it works on one: Ray hides them
    from actors that have none."""
    if device == "cpu" or "num_gpus" in resources:
        return {}
    there = ray_module().cluster_resources().get("GPU", 0)
    if not there:
        raise DeviceError(f"device={device!r}: Ray knows of no GPU")
    return {"num_gpus": min(1.0, there / n_workers)}
