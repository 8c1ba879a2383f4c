"""What every engine must do as the local network does; run by the engines' tests, and by each rank
of an MPI job."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import conche

ray_there = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed (conche[ray])"
)

SOLVERS = (
    dict(solver="exact"),
    dict(solver="damped"),
    dict(solver="damped", damping="auto", scaling="running", fit_intercept=True),
    dict(solver="memory", acceleration="cg"),
    dict(solver="memory", sketch_size=0, missing="mean", scaling="first"),
)
PARTITION = [[0, 3, 5], [1, 2, 4, 6, 7, 8, 9, 10]]


def cases() -> Iterator[tuple[type, dict[str, Any], list[tuple[Any, Any]]]]:
    """Every solver, both losses, 1 and 20 rounds, unequal blocks, three tasks, 2-D targets."""
    tasks = conche.gaussian_tasks(3, 30, 11, n_shared=6, noise_var=0.1)
    plain = [(t.X, t.y) for t in tasks]
    wide = [(t.X, np.column_stack([t.y, -(t.y**2)])) for t in tasks]
    labels = [(t.X, np.digitize(t.y, [-0.3, 0.3])) for t in tasks]
    for options in SOLVERS:
        for rounds in (1, 20):
            both = options | {"n_rounds": rounds}
            yield conche.CoCoARegressor, both, plain
            yield conche.CoCoARegressor, both, wide
            for loss in ("squared", "logistic"):
                yield conche.CoCoAClassifier, both | {"loss": loss}, labels


def compare(network: Callable[[], Any]) -> list[str]:
    """What differs from the local network by more than 1e-10, or in the record of a round."""
    wrong = []
    for kind, options, data in cases():
        here = kind(partition=PARTITION, **options)
        there = kind(partition=PARTITION, network=network(), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for X, y in data:
                here.partial_fit(X, y)
                there.partial_fit(X, y)
        name = f"{kind.__name__} {options} {np.shape(data[0][1])}"
        apart = np.max(np.abs(here.coef_ - there.coef_)) / np.max(np.abs(here.coef_))
        if not apart <= 1e-10:
            wrong.append(f"{name}: coefficients differ by {apart:.1e}")
        sent = [[r["bytes"] for r in model.history_] for model in (here, there)]
        if sent[0] != sent[1]:
            wrong.append(f"{name}: bytes differ")
        for a, b in zip(here._nodes.states(), there._nodes.states(), strict=True):
            same = a.memory.keys() == b.memory.keys() and all(
                np.allclose(a.memory[k], b.memory[k], rtol=1e-9, atol=1e-9) for k in a.memory
            )
            if not same:
                wrong.append(f"{name}: memory differs")
    return wrong


if __name__ == "__main__":  # on every rank of an MPI job
    import sys

    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    found = compare(MPINetwork)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print("\n".join(found) or "all the same")
    sys.exit(1 if found else 0)
