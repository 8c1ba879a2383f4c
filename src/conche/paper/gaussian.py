"""Gaussian matrices, drawn as small as they may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.arrays import Array
from ..common.device import Draws


def gaussian_rows(rng: np.random.Generator, n: int, p: int) -> Array:
    """An n x p Gaussian matrix, or its p x p triangular factor R where n > p.

    Whatever depends on A only through A^T A has the same distribution for both, and R is cheaper:
    its entries are independent (Bartlett), normal above the diagonal and chi on it.
    """
    if n <= p:
        return rng.standard_normal((n, p))
    R = np.triu(rng.standard_normal((p, p)), 1)
    R[np.diag_indices(p)] = np.sqrt(rng.chisquare(n - np.arange(p)))
    return R


def gaussian_batch(draws: Draws, xp: Any, n: int, p: int) -> Array:
    """The same for every trial of a batch: trials x min(n, p) x p."""
    if n <= p:
        return draws.normal((n, p))
    R = xp.triu(draws.normal((p, p)), k=1)
    diagonal = xp.sqrt(draws.chisquare(n - np.arange(p)))
    places = xp.eye(p, dtype=R.dtype, device=R.device)
    return R + diagonal[..., None] * places
