"""A driver that learns, and then waits to be looked into: run by a test in another process."""

from __future__ import annotations

import sys
from typing import Any

import conche
from conche.network.ray import RayNetwork

if __name__ == "__main__":
    stream = conche.NodeStream(sys.argv[1], RayNetwork(timeout=60))
    options: dict[str, Any] = {"partition": stream.partition, "network": stream.network}
    if sys.argv[2] == "memory":
        model = conche.ConcheRegressor(**options)
    else:  # more rounds than are replayed, so that positions would be noted
        model = conche.CoCoARegressor(
            solver=sys.argv[2], n_rounds=20, scaling="first", fit_intercept=True, **options
        )
    for task in stream:
        model.partial_fit(task.X, task.y)
    guess = model.predict(stream.task(0).X)
    print(*guess)
    print(*(() if model.state_.setup.homes else model.coef_), flush=True)
    sys.stdin.readline()
