"""What the Conche method reaches: the tables of docs/method.md.

    python -m benchmarks.method [exact hard flat digits defaults ablation] --data ../shared/data

Errors are means over test tasks; offline is the ridge solution on all tasks at once, with the same
ridge. Sections that need MNIST are left out without --data.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.network import cut as merging
from conche.network.principal import PrincipalNetwork
from conche.nodes.solvers import principal as blocks
from conche.tasks import embedded_digits
from tests.helpers.hard_streams import KINDS, class_incremental, exactness, hard, rare_columns
from tests.helpers.models import raw
from tests.helpers.streams import beijing, mnist

SEEDS = 5


def learn(model: Any, tasks: Sequence[Task]) -> Any:
    for task in tasks:
        model.partial_fit(task.X, task.y)
    return model


def mean_square(predict: Callable[[Array], Array], tasks: Sequence[Task]) -> float:
    return float(np.mean([np.mean((t.y - predict(t.X)) ** 2) for t in tasks]))


def table(title: str, columns: Sequence[str], rows: Iterator[tuple[str, Sequence[Any]]]) -> None:
    print(f"\n| {title} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, cells in rows:
        shown = [f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells]
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)


def exact(data: Path | None) -> None:
    """Random streams with p <= rank: the largest distance from offline after any task."""
    worst, rounds = 0.0, 0
    for seed in range(300):
        for distance, used in exactness(seed):
            worst, rounds = max(worst, distance), max(rounds, used)
    print(f"\n300 random streams, p <= rank: coefficients within {worst:.1e} of the offline ridge")
    print(f"solution's after every task, relative to their norm; at most {rounds} round(s) a task")


def hard_rows(n: int, noise: float, nodes: Sequence[int]) -> Iterator[tuple[str, Sequence[Any]]]:
    for kind in KINDS:
        stream = hard(kind, 1000, 8, n, noise)
        damping = 4 * float(np.mean(stream.train[0].X.var(axis=0)))
        alone = learn(raw(1, solver=Memory(ridge=damping)), stream.train)
        offline = mean_square(alone.predict, stream.test)
        cells: list[Any] = []
        for K in nodes:
            model = raw(K, solver=Memory(rank=600, ridge=damping))
            cells.append(mean_square(learn(model, stream.train).predict, stream.test) / offline)
        default, same = (learn(conche.ConcheRegressor(K), stream.train) for K in (nodes[-1], 1))
        ours, exact = (mean_square(m.predict, stream.test) for m in (default, same))
        cells.append(f"{ours / exact:.6f}")
        rounds = len(model.history_) / len(stream.train)
        yield kind, [*cells, f"{model.tasks_[-1]['gap']:.1%}", f"{rounds:.0f}"]


def hard_streams(data: Path | None) -> None:
    """Error over offline ridge: p = 1000, T = 8; forced to rank 600, where 1000 would be exact.

    The default's is over its own ridge on one node, which is the offline solution.
    """
    for n, noise, nodes in ((250, 0.3, (4, 64)), (1000, 0.3, (4, 64)), (1000, 0.003, (16,))):
        columns = [f"K = {K}" for K in nodes]
        columns += ["by default (lossless)", "estimated gap", "rounds a task"]
        table(f"n = {n}, noise {noise}", columns, hard_rows(n, noise, nodes))


def flat(data: Path | None) -> None:
    """Independent columns, p = 1500, n = 3000, T = 6, K = 8, rank 600."""
    stream = hard("independent", 1500, 6, 3000, 0.3)
    ours = raw(n_nodes=8, solver=Memory(rank=600, ridge=4.0))
    alone = raw(n_nodes=1, solver=Memory(ridge=4.0))
    errors = [mean_square(learn(m, stream.train).predict, stream.test) for m in (ours, alone)]
    print(f"\nflat spectrum, p = 1500, rank 600: {errors[0] / errors[1]:.4f} of offline")


def accuracy(
    p: int, K: int, n_tasks: int, rank: int | None, data: Path
) -> tuple[float, float, float]:
    """Of Conche and of the offline ridge solution, one pass over class-incremental MNIST; and the
    seconds that Conche took."""
    tasks, (X, y) = class_incremental(p, n_tasks=n_tasks, data=data)
    model = conche.ConcheClassifier(n_nodes=K, solver=Memory(rank=rank))
    G, b = np.eye(p), np.zeros((p, 10))
    seconds = 0.0
    for X_t, y_t in tasks:
        clock = time.perf_counter()
        model.partial_fit(X_t, y_t, classes=range(10))
        seconds += time.perf_counter() - clock
        G += X_t.T @ X_t
        b += X_t.T @ np.where(y_t[:, None] == np.arange(10), 1.0, -1.0)
    offline = np.argmax(X @ np.linalg.solve(G, b), axis=1)
    return float(model.score(X, y)), float(np.mean(offline == y)), seconds


def digits(data: Path | None) -> None:
    """Class-incremental MNIST, all 60,000 samples, one pass, defaults."""
    if data is None:
        return
    cases = [(2000, 8, 5), (2000, 64, 5), (1000, 8, 200), (5000, 8, 5), (5000, 64, 5)]
    rows = ((f"p = {p}, K = {K}, {T} tasks", accuracy(p, K, T, None, data)) for p, K, T in cases)
    table("class-incremental MNIST: accuracy", ["Conche", "offline", "seconds"], rows)


Draw = Callable[[int], tuple[Sequence[Task], Sequence[Task]]]


def default_streams(data: Path | None) -> dict[str, tuple[Draw, bool]]:
    """Twelve streams, and whether they have labels."""
    streams: dict[str, tuple[Draw, bool]] = {}
    for n in (16, 128, 1024):
        for noise in (0.01, 1.0):
            draw = _paper(n, noise, 0.0)
            streams[f"paper's model, n = {n}, noise {noise}"] = (draw, False)
    streams["correlated 0.9"] = (_paper(128, 0.1, 0.9), False)
    streams["digits"] = (lambda seed: embedded_digits(seed=seed), True)
    streams["rare columns (sparse, 10,000 wide)"] = (rare_columns, False)
    if data is not None:
        streams["Beijing air"] = (lambda seed: beijing(seed, data=data), False)
        streams["MNIST odd/even"] = (lambda seed: mnist(seed, n_features=2000), True)
        streams["class-incremental MNIST"] = (lambda seed: _incremental(seed, data), True)
    return streams


def _paper(n: int, noise: float, correlation: float) -> Draw:
    def draw(seed: int) -> tuple[list[Task], list[Task]]:
        tasks = conche.gaussian_tasks(16, n, 128, 96, noise, correlation, seed)
        fresh = [
            Task(t.X, t.y, t.weights, t.noise_var)
            for t in conche.gaussian_tasks(16, 400, 128, 96, noise, correlation, seed)
        ]
        return tasks, [replace_truth(f, t) for f, t in zip(fresh, tasks, strict=True)]

    return draw


def replace_truth(fresh: Task, task: Task) -> Task:
    """New samples of a task whose truth is known."""
    assert task.weights is not None and fresh.weights is not None
    noise = fresh.y - fresh.X @ fresh.weights
    return replace(fresh, y=fresh.X @ task.weights + noise, weights=task.weights)


def _incremental(seed: int, data: Path) -> tuple[list[Task], list[Task]]:
    tasks, test = class_incremental(1000, n_samples=10_000, seed=seed, data=data)
    return [Task(*task) for task in tasks], [Task(*test)]


def error_of(draw: Draw, labels: bool, damping: Any, seeds: Sequence[int], K: int = 4) -> float:
    errors = []
    for seed in seeds:
        train, test = draw(seed)
        if not labels:
            model = raw(n_nodes=K, solver=Memory(ridge=damping))
            errors.append(mean_square(learn(model, train).predict, test))
            continue
        plain: dict[str, Any] = {"fit_intercept": False, "scaling": None}
        classifier = conche.ConcheClassifier(n_nodes=K, solver=Memory(ridge=damping), **plain)
        classes = np.unique(np.concatenate([task.y for task in train]))
        for task in train:
            classifier.partial_fit(task.X, task.y, classes=classes)
        errors.append(float(np.mean([np.mean(classifier.predict(t.X) != t.y) for t in test])))
    return float(np.mean(errors))


def defaults(data: Path | None) -> None:
    """The default ridge against nine fixed ones, the same for all columns."""

    def rows() -> Iterator[tuple[str, Sequence[Any]]]:
        for name, (draw, labels) in default_streams(data).items():
            seeds = range(1 if "Beijing" in name or "rare" in name or "class" in name else 3)
            X = draw(0)[0][0].X
            mean = float(X.mean()) if hasattr(X, "toarray") else X.mean(axis=0)
            scale = float((X**2).mean() - np.mean(np.square(mean)))
            fixed = [error_of(draw, labels, scale * 10.0**k, seeds) for k in range(-4, 5)]
            ours = error_of(draw, labels, None, seeds)
            best = int(np.argmin(fixed))
            yield name, [ours, min(fixed), f"1e{best - 4:+d}", ours / min(fixed)]

    table("default ridge", ["error", "best of nine", "which (over variance)", "ratio"], rows())


def ablation(data: Path | None) -> None:
    """One part left out at a time: error over offline ridge, p = 1000, K = 16."""

    def frequent(
        squares: Array, rank: int, n_columns: int, beyond: float = 0.0
    ) -> tuple[Array, float]:
        kept, rest = np.maximum(squares[-rank:], 1e-300), squares[:-rank]
        first = max(float(rest[-1]), 0.0) if len(rest) else 0.0
        return np.minimum(first / kept, 1.0), first + beyond

    def one_pass(rows: merging.Rows, rank: int, n_columns: int) -> merging.Cut:
        Q = merging.orthonormal(rows.sketch(rank + merging.OVERSAMPLING))
        seen = rows.project(Q)
        beyond = max(seen[-1, 0] - np.trace(seen[:-1]), 0.0)
        cut = merging.exact_cut(seen[:-1], rank, n_columns, beyond)
        return cut._replace(W=Q @ cut.W)

    parts: dict[str, Any] = {
        "all of it": mock.patch.object(merging, "OVERSAMPLING", merging.OVERSAMPLING),
        "no shortening": mock.patch.object(merging, "SHORTENING", 0.0),
        "by the whole mean": mock.patch.object(merging, "SHORTENING", 1.0),
        "Frequent Directions' shortening": mock.patch.object(merging, "shortened", frequent),
        "no power step": mock.patch.object(merging, "range_cut", one_pass),
        "diagonal remainder": mock.patch.object(blocks, "WIDEST_BLOCK", 1),
    }
    kinds = ("independent", "factors", "means", "toeplitz")
    streams = [hard(kind, 1000, 8, 1000, 0.3) for kind in kinds]
    alone = [_ratio_base(stream) for stream in streams]
    none: Any = mock.patch.object(merging, "OVERSAMPLING", merging.OVERSAMPLING)
    one_level = mock.patch.object(PrincipalNetwork, "_correct", lambda self, s: 0.0 * s)

    def rows(rank: int) -> Iterator[tuple[str, Sequence[Any]]]:
        for name, patch in parts.items():
            yield (
                name,
                [error / base for error, base in zip(_errors(rank, patch), alone, strict=True)],
            )
        for name, patch in {"rounds a task": none, "without the second level": one_level}.items():
            yield name, [f"{count:.0f}" for count in _rounds(rank, patch)]

    def _errors(rank: int, patch: Any) -> Iterator[float]:
        with patch:
            for stream in streams:
                model = raw(16, solver=Memory(rank=rank, ridge=4.0))
                yield mean_square(learn(model, stream.train).predict, stream.test)

    def _rounds(rank: int, patch: Any) -> Iterator[float]:
        with patch:
            for stream in streams:
                solver = Memory(rank=rank, ridge=4.0)
                model = raw(16, solver=solver, n_rounds=300)
                yield len(learn(model, stream.train).history_) / len(stream.train)

    for rank in (600, 400):
        table(f"rank {rank} of 1000, n = 1000, K = 16", kinds, rows(rank))
    table("rank 0: no directions", kinds, iter([("all of it", list(_ratios(streams, alone)))]))


def _ratios(streams: Sequence[Any], alone: Sequence[float]) -> Iterator[float]:
    for stream, base in zip(streams, alone, strict=True):
        model = raw(16, solver=Memory(rank=0, ridge=4.0))
        yield mean_square(learn(model, stream.train).predict, stream.test) / base


def _ratio_base(stream: Any) -> float:
    model = raw(n_nodes=1, solver=Memory(ridge=4.0))
    return mean_square(learn(model, stream.train).predict, stream.test)


SECTIONS: dict[str, Callable[[Path | None], None]] = {
    "exact": exact,
    "hard": hard_streams,
    "flat": flat,
    "digits": digits,
    "defaults": defaults,
    "ablation": ablation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all")
    parser.add_argument("--data", type=Path, help="a folder with mnist and beijing-air")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.sections or SECTIONS:
        print(f"\n### {SECTIONS[name].__doc__}")
        SECTIONS[name](arguments.data)


if __name__ == "__main__":
    main()
