"""The Conche method on columns as they come: what references without an intercept speak of."""

from __future__ import annotations

from typing import Any

import numpy as np

import conche
from conche.common.arrays import Array
from conche.network import LocalNetwork


def raw(n_nodes: int | None = None, **options: Any) -> conche.ConcheRegressor:
    """`ConcheRegressor` without intercept and scaling."""
    own: dict[str, Any] = {"fit_intercept": False, "scaling": None} | options
    return conche.ConcheRegressor(n_nodes, **own)


def rounds_of(model: conche.CoCoARegressor | conche.CoCoAClassifier, what: str) -> Array:
    """One number of every round, of a model that has rounds."""
    records: Any = model.history_
    return np.array([record[what] for record in records], dtype=float)


class Apart(LocalNetwork):
    """The local network as if its nodes were in processes of their own: they rotate."""

    apart = True
