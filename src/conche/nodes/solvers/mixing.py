"""Rows mixed with each other, the same way on every node: what is sent then shows how columns lie
to each other, and no sample.

Inner products of columns stay what they are, so the coordinator can learn from mixed columns as it
would from plain ones. The mixing is orthogonal (random signs and cosine transforms in turns) and
follows from the seed and from CONCHE_SHARED_SECRET, which all nodes have in their environment, and
the coordinator has not, where it must not be able to undo it.
"""

from __future__ import annotations

import os

import numpy as np
from scipy import fft

from ...common.arrays import Array

SHARED_SECRET = "CONCHE_SHARED_SECRET"
TURNS = 3


def mixed(rows: Array, *seeds: int) -> Array:
    """Q rows, Q orthogonal and as many as there are rows."""
    rng = np.random.default_rng([*seeds, *os.environ.get(SHARED_SECRET, "").encode()])
    for _ in range(TURNS):
        signs = rng.choice([-1.0, 1.0], len(rows))
        rows = fft.dct(signs[:, None] * rows[rng.permutation(len(rows))], axis=0, norm="ortho")
    return np.asarray(rows)
