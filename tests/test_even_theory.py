"""Theory of many networks at once is that of each of them alone."""

from __future__ import annotations

import numpy as np
import pytest

from conche import theory
from conche.common.arrays import even_sizes
from conche.paper.theory.even import even_errors, even_limits, even_radii

SETTINGS = [  # p, n_t, p_S, energy, drift: with uneven blocks, parts of blocks shared, squares
    (12, (64, 64, 64), 9, 1.0, 0.0),
    (37, (20, 41, 8, 20), 11.5, 2.0, 0.0),
    (50, (7, 7), 0, 0.5, 0.3),
    (23, (24, 5, 90), 23, 1.0, 0.1),
    (1, (3,), 1, 1.0, 0.0),
]


@pytest.mark.parametrize(("p", "ns", "shared", "energy", "drift"), SETTINGS)
def test_all_numbers_of_nodes_at_once(
    p: int, ns: tuple[int, ...], shared: float, energy: float, drift: float
) -> None:
    nodes = list(range(1, p + 1))
    curves = even_errors(p, nodes, np.array(ns), shared, 0.1, energy, drift)
    for K, curve in zip(nodes, curves, strict=True):
        alike = theory.Similarity.shared(len(ns), even_sizes(p, K), shared, energy, drift)
        expected = theory.generalization_error(alike, ns, 0.1)
        np.testing.assert_allclose(curve, expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("p", "n", "shared"), [(12, 64, 9), (37, 20, 11.5), (50, 7, 0), (24, 6, 1)]
)
def test_radii_and_limits(p: int, n: int, shared: float) -> None:
    nodes = list(range(1, p + 1))
    sizes = [even_sizes(p, K) for K in nodes]
    radii = [theory.spectral_radius(n, each) for each in sizes]
    limits = [theory.endless_error(n, each, shared, 0.1, 2.0) for each in sizes]
    np.testing.assert_allclose(even_radii(p, nodes, n), radii, rtol=1e-10)
    np.testing.assert_allclose(even_limits(p, nodes, n, shared, 0.1, 2.0), limits, rtol=1e-9)
    assert np.isinf(radii).any() == np.isinf(even_radii(p, nodes, n)).any()
