"""What tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def network():
    """One Ray for all tests that need it: starting it takes seconds."""
    import ray

    from conche.network.ray import RayNetwork

    network = RayNetwork(timeout=20)
    yield network
    network.close()
    ray.shutdown()
