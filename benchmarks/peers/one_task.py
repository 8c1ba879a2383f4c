"""One task: ridge regression, elastic nets and logistic regression, the same problem for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import conche
from conche.common.arrays import Array

from .measure import Measured, alone, megabytes, table, timed

EQUAL = 1e-4  # of the objective: solutions that are taken for equally good
SHAPES = {
    "dense 20,000 x 500": (20_000, 500, 1.0),
    "dense 5,000 x 5,000": (5_000, 5_000, 1.0),
    "sparse 9,000 x 40,000": (9_000, 40_000, 0.003),
}
Fit = Callable[[Any, Array], Any]  # answers the weights


class Problem(NamedTuple):
    """Columns, targets to learn and to test with, and what is minimised."""

    name: str
    X: Any
    y: Array
    test: tuple[Any, Array]
    alpha: float  # of the whole sum, not of its mean
    l1_ratio: float = 0.0
    labels: bool = False

    def objective(self, w: Array) -> float:
        """The same for all."""
        v, rho = self.X @ w, self.l1_ratio
        loss = (
            np.sum(np.logaddexp(0, -self.y * v)) if self.labels else 0.5 * np.sum((self.y - v) ** 2)
        )
        return float(loss + self.alpha * (rho * np.abs(w).sum() + 0.5 * (1 - rho) * w @ w))

    def error(self, w: Array) -> float:
        """On samples that were not learnt."""
        X, y = self.test
        return float(np.mean((X @ w > 0) != (y > 0)) if self.labels else np.mean((y - X @ w) ** 2))


def drawn(name: str, kind: str) -> Problem:
    n, p, density = SHAPES[name]
    rng = np.random.default_rng(0)
    if density < 1:
        X: Any = sparse.random_array((n + n // 4, p), density=density, rng=rng, format="csr")
        X.data = rng.standard_normal(len(X.data))
    else:
        X = rng.standard_normal((n + n // 4, p)) + rng.standard_normal((n + n // 4, 1))
    w = np.where(rng.random(p) < 0.05, rng.standard_normal(p), 0.0)
    v = X @ w
    y = v + 0.5 * np.std(v) * rng.standard_normal(len(v))
    if kind == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0)
    train, test = (X[:n], y[:n]), (X[n:], y[n:])
    if kind == "elastic net":
        alpha = 0.05 * float(np.abs(train[0].T @ train[1]).max()) / 0.9
        return Problem(f"{kind}, {name}", *train, test, alpha, 0.9)
    return Problem(f"{kind}, {name}", *train, test, 10.0, 0.0, kind == "logistic")


def theirs(module: str, name: str, **options: Any) -> Fit:
    """An estimator with scikit-learn's face, compiled where it compiles itself."""
    model = getattr(import_module(module), name)(**options)
    rng = np.random.default_rng(0)
    model.fit(rng.standard_normal((20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0))

    def fit(X: Any, y: Array) -> Any:
        X = sparse.csr_matrix(X) if sparse.issparse(X) else X  # some know no other kind
        return np.ravel(model.fit(X, y).coef_)

    return fit


def ours(make: Callable[..., Any], n_nodes: int, **options: Any) -> Fit:
    return lambda X, y: np.ravel(make(n_nodes, **options).fit(X, y).coef_)


def remembering(problem: Problem) -> conche.Memory:
    """All columns where there are 5,000; as many directions as it keeps by default beyond."""
    few = problem.X.shape[1] <= 5000
    return conche.Memory(ridge=problem.alpha, rank=5000 if few else None)


def ridge(problem: Problem) -> Iterator[tuple[str, Callable[[], Fit]]]:
    n, alpha = len(problem.y), problem.alpha
    sk = "sklearn.linear_model"
    for solver in ("cholesky", "lsqr", "sparse_cg", "svd"):
        if solver == "svd" and (sparse.issparse(problem.X) or n == problem.X.shape[1]):
            continue  # not for sparse columns; minutes for many
        options: Any = dict(alpha=alpha, fit_intercept=False, solver=solver, tol=1e-6)
        yield f"Ridge, {solver}", partial(theirs, sk, "Ridge", **options)
    for rate in (1e-4, 1e-2):
        options = dict(alpha=alpha / n, fit_intercept=False, eta0=rate, max_iter=100)
        yield f"SGDRegressor, {rate}", partial(theirs, sk, "SGDRegressor", **options)
    svr: Any = dict(
        fit_intercept=False, C=1 / alpha, loss="squared_epsilon_insensitive", epsilon=0.0
    )
    yield "LIBLINEAR (LinearSVR)", partial(theirs, "sklearn.svm", "LinearSVR", dual="auto", **svr)
    snap: Any = dict(fit_intercept=False, regularizer=alpha, n_jobs=2, normalize=False)
    yield "Snap ML", partial(theirs, "snapml", "LinearRegression", **snap)
    for name, damped in (
        ("damped", conche.Damped(alpha / n)),
        ("damped, local steps", conche.Damped(alpha / n, local_steps="auto")),
    ):  # on one node, one safe round is the solution
        options = dict(solver=damped)
        yield f"Conche, {name}, K = 1", partial(ours, conche.CoCoARegressor, 1, **options)
    memory = remembering(problem)
    for K in (1, 8):
        options = dict(solver=memory, fit_intercept=False, scaling=None)
        yield (
            f"Conche, memory, K = {K}",
            partial(ours, conche.ConcheRegressor, K, **options),
        )


def elastic_net(problem: Problem) -> Iterator[tuple[str, Callable[[], Fit]]]:
    alpha, rho = problem.alpha / len(problem.y), problem.l1_ratio
    same: Any = dict(alpha=alpha, l1_ratio=rho, fit_intercept=False)
    for tol in (1e-4, 1e-6):
        options: Any = same | dict(tol=tol, max_iter=10_000)
        name = f"ElasticNet, tol {tol:.0e}"
        yield name, partial(theirs, "sklearn.linear_model", "ElasticNet", **options)
    yield "skglm", partial(theirs, "skglm", "ElasticNet", **same, tol=1e-8)
    yield "celer", partial(theirs, "celer", "ElasticNet", **same, tol=1e-8)
    for K in (1, 8):
        options = dict(solver=conche.ElasticNet(alpha, rho), n_rounds=50, tol=1e-6)
        yield f"Conche, K = {K}", partial(ours, conche.CoCoARegressor, K, **options)
    plain: Any = dict(solver=conche.ElasticNet(alpha, rho, rank=0), n_rounds=50, tol=1e-6)
    yield (
        "Conche, rank 0, K = 1",
        partial(ours, conche.CoCoARegressor, 1, steps="adaptive", **plain),
    )


def logistic(problem: Problem) -> Iterator[tuple[str, Callable[[], Fit]]]:
    alpha, sk = problem.alpha, "sklearn.linear_model"
    for solver in ("lbfgs", "liblinear", "newton-cholesky", "saga"):
        if solver == "newton-cholesky" and problem.X.shape[1] > 5000:
            continue  # a matrix of all columns
        options: Any = dict(C=1 / alpha, fit_intercept=False, solver=solver, tol=1e-6, max_iter=300)
        yield f"LogisticRegression, {solver}", partial(theirs, sk, "LogisticRegression", **options)
    snap: Any = dict(fit_intercept=False, regularizer=alpha, n_jobs=2, normalize=False)
    yield "Snap ML", partial(theirs, "snapml", "LogisticRegression", **snap)
    for K in (1, 8):
        options = dict(
            loss="logistic", solver=remembering(problem), fit_intercept=False, scaling=None
        )
        yield f"Conche, K = {K}", partial(ours, conche.ConcheClassifier, K, **options)
    # a task of many columns without directions for those that are yet to come
    options = options | dict(solver=conche.Memory(ridge=alpha, rank=0))
    yield "Conche, rank 0, K = 1", partial(ours, conche.ConcheClassifier, 1, **options)


KINDS: dict[str, Callable[[Problem], Iterator[tuple[str, Callable[[], Fit]]]]] = {
    "ridge": ridge,
    "elastic net": elastic_net,
    "logistic": logistic,
}


def measured(problem: Problem, make: Callable[[], Fit]) -> Measured:
    def ready() -> Callable[[], tuple[float, Any]]:
        fit = make()
        return lambda: timed(lambda: fit(problem.X, problem.y))

    return alone(ready)


def compare(problem: Problem, kind: str) -> tuple[list[list[str]], dict[str, tuple[float, float]]]:
    """The table's rows; and of every method its seconds and how far it is above the best."""
    answers = {name: measured(problem, make) for name, make in KINDS[kind](problem)}
    values = {k: problem.objective(m.found) for k, m in answers.items() if m.found is not None}
    best = min(values.values())
    above = {name: max(value - best, 0.0) / best for name, value in values.items()}
    rows, points = [], {}
    for name, m in answers.items():
        if m.found is None:
            rows.append([problem.name, name, "", "", "", m.reason])
            continue
        points[name] = (m.seconds, above[name])
        error = problem.error(m.found)
        cells = [f"{m.seconds:.3f} s", f"{above[name]:.0e}", f"{error:.4g}", megabytes(m.memory)]
        rows.append([problem.name, name, *cells])
    good = {k: s for k, (s, far) in points.items() if far <= EQUAL}
    own = min((s for k, s in good.items() if "K = 1" in k), default=float("nan"))
    peer, least = min(
        ((k, s) for k, s in good.items() if "Conche" not in k),
        key=lambda x: x[1],
        default=("-", np.nan),
    )
    rows.append(
        [
            problem.name,
            f"**ours on one node over the fastest ({peer})**",
            f"**{own / least:.2f}**",
            "",
            "",
            "",
        ]
    )
    return rows, points


def run() -> dict[str, dict[str, tuple[float, float]]]:
    """Print the table; answers the points of the figure."""
    every, points = [], {}
    for kind in KINDS:
        for name in SHAPES:
            problem = drawn(name, kind)
            rows, points[problem.name] = compare(problem, kind)
            every += rows
            print(table(["", "", "", "", "", ""], rows), flush=True)
    head = ["problem", "method", "seconds", "objective above the best", "test error", "memory"]
    print(table(head, every), "\n", flush=True)
    return points
