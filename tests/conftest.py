"""What tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conche.network.ray import RayNetwork


@pytest.fixture(scope="session")
def network() -> Iterator[RayNetwork]:
    """One Ray for all tests that need it: starting it takes seconds."""
    ray = pytest.importorskip("ray", reason="ray is not installed (conche[ray])")
    from conche.network.ray import RayNetwork

    network = RayNetwork(timeout=20)
    yield network
    network.close()
    ray.shutdown()


@pytest.fixture(scope="session")
def several(network: RayNetwork) -> Iterator[RayNetwork]:
    """Workers of several nodes: of five nodes, in the same Ray."""
    from conche.network.ray import RayNetwork

    several = RayNetwork(timeout=20, workers=["b", "a", "b", "a", "b"])
    yield several
    several.close()


ENGINES = (
    "test_engines.py",
    "test_given_ridge.py",
    "test_faults.py",
    "test_worker_faults.py",
    "test_secure.py",
    "test_interrupts.py",
    "test_elastic_net.py",
    "test_litter.py",
    "test_parties.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of two processes, each takes whole files; those that start Ray share one, and its Ray."""
    for item in items:
        group = "engines" if item.path.name in ENGINES else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
