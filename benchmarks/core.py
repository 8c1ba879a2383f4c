"""Speed of one task, each as a ratio to a floor or a peer measured in the same run."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from sklearn.linear_model import Ridge, SGDRegressor

import conche
from conche import theory
from conche.common.arrays import Array
from conche.nodes import Partition
from tests.helpers.theory_reference import theorem_1


class Row(NamedTuple):
    what: str
    against: str
    seconds: float
    floor: float
    limit: str  # what the ratio must satisfy

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor


def best(call: Callable[[], Any], repeats: int = 5) -> float:
    """The fastest of a few runs: the least disturbed one."""
    times = []
    for _ in range(repeats):
        clock = time.perf_counter()
        call()
        times.append(time.perf_counter() - clock)
    return min(times)


def data(n: int, p: int, dtype: Any = np.float64) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=dtype)
    return X, (X[:, :10].sum(axis=1) + rng.standard_normal(n)).astype(dtype)


def pinv_loop(X: Array, y: Array, K: int) -> Array:
    """Algorithm 1, one round, as printed."""
    w = np.zeros(X.shape[1])
    for columns in Partition.even(X.shape[1], K):
        w[columns] = np.linalg.pinv(X[:, columns]) @ y / K
    return w


def fit(X: Any, y: Any, K: int, **options: Any) -> Any:
    return conche.CoCoARegressor(n_nodes=K, **options).fit(X, y)


def one_task() -> Iterator[Row]:
    X, y = data(2048, 1024)
    ours = best(lambda: fit(X, y, 4))
    size = "n=2048, p=1024, K=4, 1 round"
    yield Row(f"exact, {size}", "pinv loop", ours, best(lambda: pinv_loop(X, y, 4), 3), "<= 0.2")
    yield Row(
        f"exact, {size}",
        "Ridge",
        ours,
        best(lambda: Ridge(alpha=1.0, fit_intercept=False).fit(X, y)),
        "",
    )
    sgd = best(lambda: SGDRegressor().partial_fit(X, y))
    yield Row(f"exact, {size}", "SGDRegressor.partial_fit", ours, sgd, "")


def by_hand(X: Array) -> Array:
    """The least that recursive least squares needs: the Gram matrix, and its Cholesky factor."""
    G = X.T @ X
    G.flat[:: len(G) + 1] += 1.0
    return np.asarray(linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False))


def remembering() -> Iterator[Row]:
    """A further task of the Conche method, against the Gram matrix and its factor by hand."""
    cases: list[tuple[int, int, int, int | None, str]] = [
        (2048, 1024, 4, None, "<= 2.5"),
        (2048, 1024, 4, 600, "<= 6"),
        (20_000, 500, 1, None, "<= 1.5"),
        (20_000, 500, 8, None, "<= 2.5"),
    ]
    for n, p, K, rank, limit in cases:
        X, y = data(n, p)
        model = conche.ConcheRegressor(n_nodes=K, solver=conche.Memory(rank=rank))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X, y).partial_fit(X, y)
            ours = best(partial(model.partial_fit, X, y))
        floor = best(partial(by_hand, X))
        how = "" if rank is None else f", rank {rank}"
        name = f"Conche, n={n}, p={p}, K={K}{how}, a task"
        yield Row(name, "X.T @ X and its Cholesky factor", ours, floor, limit)


def five_hundred_tasks() -> Iterator[Row]:
    """The last hundred tasks of 500 against the second hundred."""
    rng = np.random.default_rng(0)
    model = conche.ConcheRegressor(n_nodes=4)
    seconds = []
    for _ in range(500):
        X = rng.standard_normal((200, 200))
        clock = time.perf_counter()
        model.partial_fit(X, X[:, 0])
        seconds.append(time.perf_counter() - clock)
    early, late = (float(np.median(part)) for part in (seconds[100:200], seconds[400:]))
    yield Row(
        "Conche, 500 tasks of 200 x 200: one of the last",
        "of the second hundred",
        late,
        early,
        "<= 1.2",
    )


def tall() -> Iterator[Row]:
    n, p, K = 20000, 2000, 8
    X, y = data(n, p)
    blocks = Partition.even(p, K).split(X)
    floor = best(lambda: [B.T @ B for B in blocks])
    ours = best(lambda: fit(X, y, K))
    yield Row(f"exact, n={n}, p={p}, K={K}, a task", "block Gram products", ours, floor, "<= 2")
    many = 21
    g, d = np.ones(n), np.ones(p)
    products = best(lambda: (X.T @ g, X @ d))
    more = best(lambda: fit(X, y, K, n_rounds=many), 3)
    yield Row(
        "  a further round", "X.T @ g and X @ d", (more - ours) / (many - 1), products, "<= 1.5"
    )


def wide() -> Iterator[Row]:
    n, p, K = 100, 1_000_000, 8
    X, y = data(n, p, np.float32)
    blocks = Partition.even(p, K).split(X)
    floor = best(lambda: [B @ B.T for B in blocks], 3)
    ours = best(lambda: fit(X, y, K), 3)
    yield Row(f"exact, n={n}, p=1e6 (float32), K={K}", "X @ X.T by blocks", ours, floor, "<= 4")


def peak_memory() -> Iterator[Row]:
    """Peak resident memory of a fresh process, over what the bare data need."""
    make = "rng.standard_normal((100, 1_000_000), dtype=np.float32)"
    X_bytes = 400e6
    peak = peak_of(f"X = {make}\nfit(X, np.ones(100, np.float32), 8)") - peak_of("")
    yield Row("  its peak memory beyond the bare process, bytes", "X", peak, X_bytes, "<= 2.5")
    make = "X = sparse.random_array((9000, 40000), density=0.003, rng=rng, format='csr')"
    before = peak_of(make)
    extra = peak_of(f"{make}\nfit(X, np.ones(9000), 4)") - before
    yield Row(
        "sparse 9000 x 40000 (0.3 %), K=4: extra memory",
        "X made dense",
        extra,
        9000 * 40000 * 8,
        "<= 0.2",
    )


def peak_of(code: str) -> float:
    """Peak resident bytes of a process that runs the code."""
    script = textwrap.dedent(
        """
        import re, warnings
        import numpy as np
        from scipy import linalg, sparse
        from benchmarks.core import fit
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        def peak():
            return re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]
        """
    )
    script += code + "\nprint(peak())\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return 1024.0 * float(done.stdout)


def sparse_task() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = sparse.random_array((9000, 40000), density=0.003, rng=rng, format="csr")
    y = rng.standard_normal(9000)
    ours = best(lambda: fit(X, y, 4, solver="damped"), 1)
    ridge = Ridge(alpha=1.0, fit_intercept=False, solver="lsqr", tol=1e-12)
    yield Row(
        "sparse 9000 x 40000 (0.3 %), K=4, damped",
        "Ridge (lsqr)",
        ours,
        best(lambda: ridge.fit(X, y), 1),
        "",
    )
    exact = best(lambda: fit(X, y, 4), 1)
    yield Row("  the same, exact (minimum norm)", "damped", exact, ours, "")


def theory_rows() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    W, n, noise = rng.standard_normal((8, 64)), [40] * 8, [0.1] * 8
    printed = best(lambda: theorem_1(W, [8] * 8, n, noise, 8), 2)
    shared = theory.Similarity.shared(1000, [10] * 1000, 5000)
    curve = best(lambda: theory.generalization_error(shared, 500, 0.01), 3)
    what = "theory: T=1000 tasks, K=1000 nodes, all t"
    yield Row(what, "Theorem 1 as printed, T=8, K=8, one t", curve, printed, "")
    sizes = [5] * 50_000 + [7] * 50_000
    radius = best(lambda: theory.spectral_radius(100, sizes), 3)
    dense = rng.standard_normal((1000, 1000))
    what = "theory: spectral radius, K=100,000"
    yield Row(
        what, "dense eigenvalues, K=1000", radius, best(lambda: np.linalg.eigvals(dense), 2), ""
    )


def rows() -> Iterator[Row]:
    every = (one_task, remembering, five_hundred_tasks, tall, wide, peak_memory, sparse_task)
    for part in (*every, theory_rows):
        yield from part()
