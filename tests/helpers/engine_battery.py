"""What every engine must do as the local network does; run by the engines' tests, and by each rank
of an MPI job."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import conche
from conche.common.arrays import Array
from conche.network import LocalNetwork, Network
from conche.nodes import NodeState

ray_there = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed (conche[ray])"
)

SOLVERS: tuple[dict[str, Any], ...] = (
    dict(solver="exact"),
    dict(solver="damped", scaling="running", fit_intercept=True),
    dict(solver="memory", steps="cg"),
    dict(solver=conche.Memory(rank=0), missing="mean", scaling="first"),
    dict(solver=conche.Memory(rank=8), steps="cg"),
    dict(solver=conche.ElasticNet(0.05), scaling="running", fit_intercept=True),
    dict(solver=conche.ElasticNet(0.02, rank=4)),
    dict(solver=conche.Memory(), scaling="running", fit_intercept=True, steps="cg"),
)
# directions have signs and a basis of their own, and so have rows that nodes have mixed
TURNED = ("gram", "root", "principal", "rows", "targets")
PARTITION = [[0, 3, 5], [1, 2, 4, 6, 7, 8, 9, 10]]
SEVERAL = [[0], [3, 9], [1, 2, 4], [5, 6], [7, 8, 10]]  # nodes, for fewer workers
Model = conche.CoCoARegressor | conche.CoCoAClassifier
Case = tuple[type[Model], dict[str, Any], list[tuple[Any, Array]]]


def cases() -> Iterator[Case]:
    """Every solver, both losses, 1 and 20 rounds, unequal blocks, three tasks, 2-D targets."""
    tasks = conche.gaussian_tasks(3, 30, 11, n_shared=6, noise_var=0.1)
    plain = [(t.X, t.y) for t in tasks]
    wide = [(t.X, np.column_stack([t.y, -(t.y**2)])) for t in tasks]
    labels = [(t.X, np.digitize(t.y, [-0.3, 0.3])) for t in tasks]
    for options in SOLVERS:
        for rounds in (1, 20):
            both = options | {"n_rounds": rounds, "partition": PARTITION}
            yield conche.CoCoARegressor, both, plain
            yield conche.CoCoARegressor, both, wide
            for loss in ("squared", "logistic"):
                yield conche.CoCoAClassifier, both | {"loss": loss}, labels
    yield from mixed()
    yield from few_entries()
    yield from arriving()
    later = [(t.X, np.digitize(t.y, [-0.3, 0.3]) % (i + 1)) for i, t in enumerate(tasks)]
    for options in SOLVERS[:1] + SOLVERS[2:5]:
        for loss in ("squared", "logistic"):
            both = options | {"n_rounds": 5, "partition": PARTITION, "loss": loss}
            yield conche.CoCoAClassifier, both, later


def arriving() -> Iterator[Case]:
    """Columns that come later, by name; and pasts with several discounts."""
    pd = pytest.importorskip("pandas")
    tasks = conche.gaussian_tasks(3, 30, 11, n_shared=6, noise_var=0.1)
    names = [f"c{j}" for j in range(11)]
    frames = [
        (pd.DataFrame(t.X[:, :p], columns=names[:p]), t.y)
        for t, p in zip(tasks, (7, 9, 11), strict=True)
    ]
    for options in SOLVERS[:1] + SOLVERS[2:]:
        both = options | {"n_rounds": 5, "partition": [["c[0-2]", "c8"], ["*[3-79]", "c10"]]}
        yield conche.CoCoARegressor, both, frames
    auto = dict(solver=conche.Memory(discount="auto"), steps="cg", partition=PARTITION)
    yield conche.CoCoARegressor, auto, [(t.X, t.y) for t in tasks]


def mixed() -> Iterator[Case]:
    """A narrow block, which sends itself, beside a wide one: merged exactly, and by range."""
    for n, rank in ((12, 20), (30, 8)):
        tasks = conche.gaussian_tasks(3, n, 80, n_shared=60, noise_var=0.1)
        options = dict(solver=conche.Memory(rank=rank, ridge=1.0), steps="cg", n_rounds=5)
        groups = {"partition": [[1, 4, 70], [k for k in range(80) if k not in (1, 4, 70)]]}
        yield conche.CoCoARegressor, options | groups, [(t.X, t.y) for t in tasks]


def few_entries() -> Iterator[Case]:
    """Sparse columns: rounds with all rows known, several strengths of the ridge and one."""
    rng = np.random.default_rng(0)
    data = []
    for t in conche.gaussian_tasks(3, 30, 80, n_shared=60, noise_var=0.1):
        X = sparse.csr_array(np.where(rng.random(t.X.shape) < 0.2, t.X, 0.0))
        data.append((X, t.y))
    for intercept, damping in ((True, None), (True, 1.0), (False, 1.0)):
        solver = conche.Memory(rank=8, ridge=damping)
        options = dict(solver=solver, steps="cg", n_rounds=5, fit_intercept=intercept)
        yield conche.CoCoARegressor, options | {"partition": [30, 50]}, data
    labels = [(X, np.digitize(y, [-0.3, 0.3])) for X, y in data]
    options = dict(solver=conche.Memory(rank=8), steps="cg", n_rounds=5, loss="logistic")
    yield conche.CoCoAClassifier, options | {"partition": [30, 50]}, labels


def shared() -> Iterator[Case]:
    """More nodes than workers: every solver, and blocks of which some are silent in a merge."""
    for kind, options, data in cases():
        plain = options.get("loss", "logistic") == "logistic" and np.ndim(data[0][1]) == 1
        if options["partition"] is PARTITION and options.get("n_rounds") == 20 and plain:
            yield kind, options | {"partition": SEVERAL}, data
    for n, rank in ((12, 20), (30, 8)):
        tasks = conche.gaussian_tasks(3, n, 80, n_shared=60, noise_var=0.1)
        solver = conche.Memory(rank=rank, ridge=1.0)
        options = dict(solver=solver, steps="cg", n_rounds=5, partition=[3, 3, 34, 37, 3])
        yield conche.CoCoARegressor, options, [(t.X, t.y) for t in tasks]
    # beyond 100 kB, which Ray sends in another way
    tasks = conche.gaussian_tasks(2, 500, 209, n_shared=150, noise_var=0.1)
    solver = conche.Memory(rank=30, ridge=1.0)
    options = dict(solver=solver, steps="cg", n_rounds=2, partition=[3, 3, 100, 100, 3])
    yield conche.CoCoARegressor, options, [(t.X, t.y) for t in tasks]


def compare(
    network: Callable[[], Network], among: Callable[[], Iterator[Case]] = cases
) -> list[str]:
    """What differs from the local network by more than 1e-10, or in the record of a round."""
    return list(chain.from_iterable(_differences(network(), *case) for case in among()))


class Apart(LocalNetwork):
    """Nodes that rotate and mix what they show, as if they were elsewhere: how that rounds is not
    what several nodes on a worker are to be judged by."""

    apart = True


def _differences(
    network: Network, kind: type[Model], options: dict[str, Any], data: list[tuple[Any, Array]]
) -> Iterator[str]:
    several = len(options["partition"]) > len(PARTITION)
    here = kind(network=Apart() if several else "local", **options)
    there = kind(network=network, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, y in data:
            here.partial_fit(X, y)
            there.partial_fit(X, y)
    name = f"{kind.__name__} {options} {np.shape(data[0][1])}"
    apart = np.max(np.abs(here.coef_ - there.coef_)) / np.max(np.abs(here.coef_))
    if not apart <= 1e-10:
        yield f"{name}: coefficients differ by {apart:.1e}"
    sent = [[task["bytes"] for task in model.tasks_] for model in (here, there)]
    if (sent[0] < sent[1]) if several else not same_rounds(here, there):
        yield f"{name}: bytes differ"
    if not same_memory(states(here), states(there)):
        yield f"{name}: memory differs"


def same_rounds(here: Model, there: Model) -> bool:
    """Whether rounds send as much. Which one is a task's last may be up to rounding, where all that
    is left is rounding."""
    for t in range(1, here.n_tasks_seen_ + 1):
        some, others = ([r["bytes"] for r in m.history_ if r["task"] == t] for m in (here, there))
        both = min(len(some), len(others))
        if some[:both] != others[:both] or len(some) + len(others) > 2 * both + 1:
            return False
    return True


def states(model: Model) -> list[NodeState]:
    """The nodes' states, wherever they are."""
    return model.node_states()


def same_memory(some: list[NodeState], others: list[NodeState]) -> bool:
    """Whether the nodes' solvers keep the same, to 1e-9.

    Nodes apart rotate what they send: their coordinator's past is turned, and compared by its size.
    """
    return all(
        a.kept.keys() - {"rotation"} == b.kept.keys() - {"rotation"}
        and all(_same(a.kept[k], b.kept[k], k in TURNED, _size(some, a, k)) for k in a.kept)
        for a, b in zip(some, others, strict=True)
    )


def _size(states: list[NodeState], own: NodeState, name: str) -> float:
    """Of the numbers that an array was computed from: what remains beside directions is what their
    squares leave of others, and directions go along with an intercept, which is large, on all
    nodes."""
    whole = [state.kept["principal"] for state in states if "principal" in state.kept]
    if name in ("remainder", "owed") and whole:
        return max(float(np.max(np.sum(V**2, axis=0), initial=0.0)) for V in whole)
    return float(np.max(np.abs(own.kept[name]), initial=0.0))


def _same(one: Array, other: Array, turned: bool, size: float) -> bool:
    if turned:
        one, other = (np.linalg.svd(x, compute_uv=False) for x in (one, other))
    return np.allclose(one, other, rtol=1e-9, atol=max(1e-9, 1e-14 * size))


def in_turns(network: Network) -> list[str]:
    """Two models on one network, task by task in turns, and the network closed in between: each
    goes on as it does alone."""
    tasks = conche.gaussian_tasks(4, 30, 11, n_shared=6, noise_var=0.1)
    options: list[dict[str, Any]] = [
        dict(solver="memory", steps="cg", n_rounds=3, fit_intercept=True),
        dict(solver="exact", scaling="first", n_rounds=2),
    ]
    alone = [conche.CoCoARegressor(partition=PARTITION, **o) for o in options]
    shared = [conche.CoCoARegressor(partition=PARTITION, network=network, **o) for o in options]
    for i, task in enumerate(tasks):
        for model in (*alone, *shared):
            model.partial_fit(task.X, task.y)
        if i == 2:
            network.close()
    apart = [np.max(np.abs(a.coef_ - b.coef_)) for a, b in zip(alone, shared, strict=True)]
    wrong = [f"in turns: coefficients differ by {far:.1e}" for far in apart if not far <= 1e-10]
    if not all(same_memory(states(a), states(b)) for a, b in zip(alone, shared, strict=True)):
        wrong.append("in turns: memory differs")
    return wrong


if __name__ == "__main__":  # on every rank of an MPI job
    import sys

    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    if MPI.COMM_WORLD.Get_size() > len(PARTITION):  # nodes in no order, and one rank has one
        found = compare(lambda: MPINetwork(workers=[1, 0, 2, 0, 1]), shared)
    else:
        found = compare(MPINetwork) + in_turns(MPINetwork()) + compare(MPINetwork, shared)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print("\n".join(found) or "all the same")
    sys.exit(1 if found else 0)
