"""Steps, local work, graphs, penalties: the tables and the figure of docs/rounds.md.

    python -m benchmarks.rounds --out docs/figures [--data DIR]

DIR holds ``beijing-air/beijing12.npz``; without it the Beijing stream is left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import ElasticNet as Theirs

import conche
from conche import CoCoARegressor, ElasticNet, Exact, Graph, Memory
from conche.common.arrays import Array
from tests.helpers.streams import beijing, drawn

from .core import Row, best
from .scaling import table

LIMIT = 4000
Problem = tuple[Array, Array]
WAYS: dict[str, dict[str, Any]] = {
    "safe: 1/K": {},
    "adaptive": dict(steps="adaptive"),
    "conjugate gradients": dict(steps="cg"),
}


def odd_or_even(n: int) -> Problem:
    digits = load_digits()
    return digits.data[:n] / 16, digits.target[:n] % 2 * 2.0 - 1


def excess(X: Array, y: Array, **options: Any) -> Array:
    """After every round: how far the loss is above its least, relative to the start."""
    r = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    model = CoCoARegressor(n_rounds=LIMIT, **options).partial_fit(X, y)
    losses = np.array([record["loss"] for record in model.history_])
    least = np.mean(r**2) / 2
    return np.asarray((losses - least) / (np.mean(y**2) / 2 - least))


def first_below(values: Array, level: float) -> str:
    good = np.flatnonzero(values <= level)
    return f"{good[0] + 1:,}" if len(good) else f"> {LIMIT:,}"


def steps(data: Path | None) -> None:
    problems: list[tuple[str, Problem, int, float]] = [
        ("independent columns", drawn(200, 80, 0, "plain"), 4, 1e-4),
        ("independent, more nodes", drawn(200, 80, 0, "plain"), 16, 1e-4),
        ("overparametrised", drawn(60, 160, 3, "plain"), 4, 1e-4),
        ("three common factors", drawn(200, 80, 5, "factors"), 8, 1e-4),
        ("one common factor", drawn(200, 80, 6, "common"), 8, 1e-4),
        ("a chain, 0.95", drawn(200, 80, 7, "chain"), 8, 1e-4),
        ("digits, odd or even", odd_or_even(300), 4, 1e-4),
    ]
    if data is not None:
        for i in (0, 20):
            task = beijing(data=data)[0][i]
            problems.append((f"Beijing, month {i + 1}", (task.X, task.y), 12, 1e-2))
    rows = []
    for name, (X, y), K, level in problems:
        needed = [first_below(excess(X, y, n_nodes=K, **way), level) for way in WAYS.values()]
        rows.append([name, str(K), f"{level:.0e}", *needed])
    print(table(["problem", "K", "excess left", "safe", "adaptive", "cg"], rows), "\n")


def local_work() -> None:
    X, y = drawn(400, 160, 10, "chain")
    rows = []
    for s in (1, 3, 10, 30, None):
        options: dict[str, Any] = dict(n_nodes=4, steps="adaptive", solver=Exact(local_steps=s))
        values = excess(X, y, **options)
        model = CoCoARegressor(n_rounds=10, **options)
        accuracy = np.mean([r["accuracy"] for r in model.partial_fit(X, y).history_])
        needed = first_below(values, 1e-4)
        work = int(needed.replace(",", "")) * (2 * (s or 0) + 2)
        done = f"{work:,}" if s else f"{work:,} and a factorisation"
        rows.append([str(s or "exact"), f"{accuracy:.1g}", needed, done])
    head = ["local steps", "gradient left on the node", "rounds", "products with a block"]
    print(table(head, rows), "\n")


def graph_distances(task: conche.Task, network: Graph, ridge: float = 0.0) -> Array:
    """Of all weights' predictions from the optimum's, after every round, relative to its size."""
    best = _optimum(task, ridge)
    found: list[float] = []
    inner, v = network.propose_each, np.zeros(len(task.y))

    def spied(g: Any) -> Any:
        nonlocal v
        answers = inner(g)
        v = v + sum(p.image[: len(v), 0] for p in answers) / 16
        found.append(float(np.linalg.norm(v - best) / np.linalg.norm(best)))
        return answers

    solver = Memory(rank=0, ridge=ridge) if ridge else Exact()
    model = CoCoARegressor(n_nodes=16, n_rounds=LIMIT, network=network, solver=solver)
    with mock.patch.object(network, "propose_each", spied):
        model.partial_fit(task.X, task.y)
    return np.array(found)


def _optimum(task: conche.Task, ridge: float) -> Array:
    X: Array = task.X
    if not ridge:
        return np.asarray(X @ np.linalg.lstsq(X, task.y, rcond=None)[0])
    M = X.T @ X + ridge * np.eye(X.shape[1])
    return np.asarray(X @ np.linalg.solve(M, X.T @ task.y))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "complete: plain CoCoA": lambda: Graph("complete"),
    "regular, 4 neighbours": lambda: Graph("regular"),
    "grid, 4 x 4": lambda: Graph("grid"),
    "ring": lambda: Graph("ring"),
    "ring, 10 % lost": lambda: Graph("ring", lost=0.1),
    "ring, 50 % lost": lambda: Graph("ring", lost=0.5),
    "ring, 5 exchanges a round": lambda: Graph("ring", mixing=5),
}


def settled(distances: Array, level: float = 1e-4) -> int:
    far = np.flatnonzero(distances > level)
    return int(far[-1]) + 2 if len(far) else 1


def graphs() -> None:
    task = conche.gaussian_tasks(1, 400, 64, noise_var=0.1)[0]
    rows = []
    for name, make in GRAPHS.items():
        squares, ridged = (settled(graph_distances(task, make(), ridge)) for ridge in (0.0, 40.0))
        network = make()
        CoCoARegressor(n_nodes=16, network=network).partial_fit(task.X, task.y)
        vectors = squares * network.message_count()
        rows.append([name, f"{squares:,}", f"{vectors:,}", f"{ridged:,}"])
    head = ["graph of 16", "rounds", "vectors sent", "rounds, ridge"]
    print(table(head, rows), "\n")


def wide_and_sparse() -> tuple[Any, Array, float]:
    """2,000 samples of 200,000 columns, and the alpha rho that leaves no weight."""
    rng = np.random.default_rng(0)
    n, p = 2000, 200_000
    X = sparse.random(n, p, 0.002, random_state=1, format="csc", data_rvs=rng.standard_normal)
    w = np.zeros(p)
    w[rng.choice(p, 200, False)] = rng.standard_normal(200)
    y = X @ w + 0.01 * rng.standard_normal(n)
    return X, y, float(np.abs(X.T @ y).max() / n)


def timed(model: Any, X: Any, y: Array, repeats: int = 3) -> float:
    """The least of some fits: the first one loads what it needs."""
    return best(lambda: model.fit(X, y), repeats)


def theirs_and_ours(
    X: Any, y: Array, alpha: float, rho: float, kinds: tuple[tuple[int, int | None], ...]
) -> list[tuple[float, float, int]]:
    """Seconds, gap and rounds: scikit-learn to a tolerance, then ours to the gap it reached, for
    numbers of nodes and ranks."""
    theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-5, max_iter=10**5)
    found = [(timed(theirs, X, y), gap(X, y, theirs.coef_, alpha, rho), theirs.n_iter_)]
    for K, rank in kinds:
        model = CoCoARegressor(
            n_nodes=K,
            n_rounds=300,
            solver=ElasticNet(alpha, rho, rank=rank),
            steps="adaptive",
            tol=found[0][1] / (0.5 * np.mean(y**2)),
        )
        seconds = timed(model, X, y)
        found.append((seconds, gap(X, y, model.coef_, alpha, rho), len(model.history_)))
    return found


def elastic() -> None:
    X, y, top = wide_and_sparse()
    rows = []
    for share, rho in ((0.1, 0.5), (0.05, 1.0), (0.02, 0.9)):
        kinds = ((8, None), (1, None), (1, 0), (8, 0))
        theirs, *ours = theirs_and_ours(X, y, share * top / rho, rho, kinds)
        row = [f"{share} of the largest, {rho}", f"{theirs[0]:.2f} s", f"{theirs[1]:.0e}"]
        for seconds, reached, rounds in ours:
            row += [f"{seconds:.2f} s, {rounds} rounds, {reached:.0e}"]
        rows.append(row)
    head = ["alpha, l1_ratio", "scikit-learn", "its gap", "K = 8", "K = 1"]
    head += ["K = 1, rank 0", "K = 8, rank 0"]
    print(table(head, rows), "\n")


def rows() -> Iterator[Row]:
    X, y, top = wide_and_sparse()
    kinds = ((1, 0), (8, None))
    (theirs, reached, _), *ours = theirs_and_ours(X, y, 0.1 * top, 0.5, kinds)
    assert all(gap_ours <= reached for _, gap_ours, _ in ours)
    what = "an elastic net, 2,000 x 200,000 sparse"
    against = "scikit-learn's, to the same gap"
    yield Row(f"{what}, K=1, rank 0", against, ours[0][0], theirs, "< 1")
    yield Row(f"{what}, K=8, remembered", against, ours[1][0], theirs, "<= 2")


def gap(X: Any, y: Array, w: Array, alpha: float, rho: float) -> float:
    """The duality gap of an elastic net, a sample; for both alike."""
    n, r = len(y), y - X @ w
    l1, l2 = n * alpha * rho, n * alpha * (1 - rho)
    squares = r @ r + l2 * w @ w
    s = min(1.0, l1 / np.abs(X.T @ r - l2 * w).max(), r @ y / squares)
    primal = 0.5 * r @ r + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
    return float(primal - s * (r @ y) + 0.5 * s**2 * squares) / n


def certificates() -> None:
    task = conche.gaussian_tasks(1, 200, 80, noise_var=0.1)[0]
    wide = conche.gaussian_tasks(1, 60, 160, noise_var=0.1)[0]
    cases: list[tuple[str, conche.Task, float, dict[str, Any]]] = [
        ("memory of blocks, cg", task, 10.0, dict(solver=Memory(rank=0, ridge=10.0), steps="cg")),
        ("memory of blocks, safe", task, 10.0, dict(solver=Memory(rank=0, ridge=10.0))),
        ("exact, overparametrised, adaptive", wide, 0.0, dict(steps="adaptive")),
        ("exact, n > p, adaptive", task, 0.0, dict(steps="adaptive")),
    ]
    rows = []
    for name, one, ridge, options in cases:
        row = [name]
        for rounds in (2, 5, 10, 20):
            model = CoCoARegressor(n_nodes=4, n_rounds=rounds, **options)
            model.partial_fit(one.X, one.y)
            r, w = one.y - one.X @ model.coef_, model.coef_
            value = 0.5 * r @ r + 0.5 * ridge * w @ w
            M = one.X.T @ one.X + ridge * np.eye(one.X.shape[1])
            best = np.linalg.lstsq(M, one.X.T @ one.y, rcond=None)[0]
            q = one.y - one.X @ best
            true = (value - 0.5 * q @ q - 0.5 * ridge * best @ best) / len(one.y)
            row.append(f"{max(true, 0):.0e} <= {model.history_[-1]['bound']:.0e}")
        rows.append(row)
    head = ["distance from the optimum, and bound", *(f"{i} rounds" for i in (2, 5, 10, 20))]
    print(table(head, rows), "\n")


def figure(out: Path) -> None:
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    X, y = drawn(200, 80, 6, "common")
    for name, way in WAYS.items():
        values = excess(X, y, n_nodes=8, **way)
        left.loglog(np.arange(1, len(values) + 1), np.maximum(values, 1e-16), label=name)
    left.set(xlabel="rounds", ylabel="excess loss, relative to the start", ylim=(1e-8, 1.5))
    left.set_title("8 nodes, one common factor in all columns")
    task = conche.gaussian_tasks(1, 400, 64, noise_var=0.1)[0]
    for name, make in GRAPHS.items():
        values = graph_distances(task, make())
        right.semilogy(np.arange(1, len(values) + 1), np.maximum(values, 1e-12), label=name)
    right.set(xlabel="rounds", ylabel="distance of predictions from the optimum's")
    right.set(xlim=(0, 2500), ylim=(1e-6, 1.5))
    right.set_title("16 nodes without a centre")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
        axes.grid(alpha=0.3)
    plt.savefig(out / "rounds.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    steps(given.data)
    local_work()
    graphs()
    elastic()
    certificates()
    figure(given.out)


if __name__ == "__main__":
    main()
