"""The Conche method on columns as they come: what references without an intercept speak of."""

from __future__ import annotations

from typing import Any

import conche
from conche.network import LocalNetwork


def raw(n_nodes: int | None = None, **options: Any) -> conche.ConcheRegressor:
    """`ConcheRegressor` without intercept and scaling."""
    own: dict[str, Any] = {"fit_intercept": False, "scaling": None} | options
    return conche.ConcheRegressor(n_nodes, **own)


class Apart(LocalNetwork):
    """The local network as if its nodes were in processes of their own: they rotate."""

    apart = True
