"""Elastic nets: scikit-learn's objective, with certificates, over nodes and tasks."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet as Theirs
from sklearn.linear_model import LogisticRegression, enet_path

import conche
from conche import CoCoAClassifier, CoCoARegressor, ElasticNet
from conche.common.arrays import Array
from conche.network import LocalNetwork
from conche.nodes.solvers.candidates import STRENGTHS, CandidateBlock
from conche.nodes.solvers.l1 import EXACT, Columns, Penalty, on_working_sets
from conche.nodes.solvers.mixing import mixed

from .helpers.engine_battery import ray_there
from .helpers.models import rounds_of


def objective(X: Any, y: Array, w: Array, alpha: float, rho: float) -> float:
    r = y - X @ w
    penalty = rho * np.abs(w).sum() + 0.5 * (1 - rho) * w @ w
    return float(0.5 * r @ r / len(y) + alpha * penalty)


def problem(kind: str, seed: int = 0) -> tuple[Any, Array]:
    rng = np.random.default_rng(seed)
    n, p = {"tall": (150, 60), "correlated": (80, 64)}.get(kind, (100, 300))
    X: Any = rng.standard_normal((n, p))
    if kind == "sparse":
        X = sparse.random(n, p, 0.05, format="csr", random_state=seed, data_rvs=rng.standard_normal)
    if kind == "correlated":
        X = X + rng.standard_normal((n, 1))
    w = np.where(np.arange(p) < 10, rng.standard_normal(p), 0.0)
    return X, X @ w + 0.1 * rng.standard_normal(n)


def offline(X: Any, y: Array, alpha: float, rho: float, intercept: bool = False) -> Any:
    """scikit-learn's, to the last digits."""
    theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=intercept, tol=1e-14, max_iter=10**6)
    return theirs.fit(X, y)


def drawn_at_random(seed: int) -> tuple[Any, Array, float, float, dict[str, Any]]:
    """A problem, its penalty, and options: any kind of columns, 1 to 32 nodes, with room for the
    past of all columns or of a few."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(40, 200)), int(rng.integers(40, 400))
    X: Any = rng.standard_normal((n, p))
    kind = ("independent", "common", "twins", "sparse", "lengths")[seed % 5]
    if kind == "common":
        X = X + 2 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
    if kind == "twins":
        X[:, p // 2 :] = X[:, : p - p // 2] + 1e-3 * X[:, p // 2 :]
    if kind == "lengths":
        X = X * np.exp(rng.standard_normal(p))
    if kind == "sparse":
        X = sparse.random(n, p, 0.05, format="csr", random_state=seed, data_rvs=rng.standard_normal)
    w = np.where(rng.random(p) < 10 / p, rng.standard_normal(p), 0.0)
    y = X @ w + 0.3 * rng.standard_normal(n)
    rho = float(rng.choice([1.0, 0.9, 0.5, 0.1]))
    alpha = float(np.abs(X.T @ y).max() / n / rho * 10 ** rng.uniform(-2.3, -0.3))
    K = 2 ** int(rng.integers(0, 6))
    rank = (8, 1024, 2048)[seed % 3]
    return X, y, alpha, rho, dict(n_nodes=K, solver=ElasticNet(alpha, rho, rank=rank))


@pytest.mark.parametrize("seed", range(60))
def test_scikit_learns_solution_on_any_number_of_nodes(seed: int) -> None:
    X, y, alpha, rho, options = drawn_at_random(seed)
    model = CoCoARegressor(**options, n_rounds=30, tol=1e-9).partial_fit(X, y)
    theirs = offline(X, y, alpha, rho)
    ours, best = (objective(X, y, m.coef_, alpha, rho) for m in (model, theirs))
    assert -1e-10 * best <= ours - best <= 1e-9 * best
    assert ours - best <= rounds_of(model, "bound")[-1] <= 1e-8 * np.mean(y**2)
    if options["solver"].rank > 8:  # all columns are offered at once: found, and certified
        assert len(model.history_) == 1


@pytest.mark.parametrize("K", [1, 4, 16])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_stream_is_the_offline_elastic_net_after_every_task(K: int, intercept: bool) -> None:
    """One pass, one round a task; the objective, the support and the gap."""
    rng = np.random.default_rng(K)
    p, alpha, rho = 200, 0.05, 0.7
    ours = CoCoARegressor(n_nodes=K, solver=ElasticNet(alpha, rho), fit_intercept=intercept)
    w = np.where(np.arange(p) < 30, rng.standard_normal(p), 0.0)
    rows, targets = [], []
    for _ in range(20):
        n = int(rng.integers(20, 150))
        X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
        y = X @ w + 0.3 * rng.standard_normal(n) + 2.0 * intercept
        w = w + 0.02 * rng.standard_normal(p) * (w != 0)
        rows.append(X)
        targets.append(y)
        A, b = np.vstack(rows), np.concatenate(targets)
        theirs = offline(A, b, alpha, rho, intercept)
        best = objective(A, b - theirs.intercept_, theirs.coef_, alpha, rho)
        ours.partial_fit(X, y)
        found = objective(A, b - ours.intercept_, ours.coef_, alpha, rho)
        assert abs(found - best) <= 1e-10 * best
        assert np.array_equal(ours.coef_ != 0, theirs.coef_ != 0)
        gap = ours.offline_gap_
        assert 0 <= gap.estimate <= gap.bound <= 1e-9
        assert gap.objective == pytest.approx(len(b) * best, rel=1e-9)
    assert len(ours.node_states()[-1].kept["rows"]) <= p + 2  # and no sample is kept


FEW = [(1, 1e-4, 0.1), (1, 1e-3, 0.5), (2, 1e-5, 0.1), (5, 1e-2, 0.5), (20, 1e-5, 0.5)]


@pytest.mark.parametrize(("n", "share", "rho"), FEW)
@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_few_samples_and_more_weights_than_those(
    n: int, share: float, rho: float, mean: float
) -> None:
    """A weak L2 part alone tells weights apart, and coordinate descent is slow (scikit-learn's own
    may end early): certified, and no worse than theirs."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 120)) + mean
    y = X[:, :10].sum(axis=1)
    alpha = share * float(np.abs(X.T @ y).max()) / n / rho
    model = CoCoARegressor(2, solver=ElasticNet(alpha, rho)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-12, max_iter=10**5)
        theirs.fit(X, y)
    ours, best = (objective(X, y, m.coef_, alpha, rho) for m in (model, theirs))
    assert ours <= best * (1 + 1e-9)
    assert 0 <= model.offline_gap_.bound <= 1e-8  # of the objective


def test_as_many_weights_as_samples_and_no_l2_part() -> None:
    """Columns of very different lengths, and a penalty of next to nothing."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((50, 120)) * 10.0 ** rng.uniform(-3, 3, 120)
        y = X @ np.where(rng.random(120) < 0.4, rng.standard_normal(120), 0.0) / 100
        y += 0.3 * rng.standard_normal(50) + 2.0
        alpha = 2e-5 * float(np.abs((X - X.mean(axis=0)).T @ y).max()) / 50
        model = CoCoARegressor(3, solver=ElasticNet(alpha, 1.0), fit_intercept=True).fit(X, y)
        value = 50 * objective(X, y - model.intercept_, model.coef_, alpha, 1.0)
        assert model.offline_gap_.objective == pytest.approx(value, rel=1e-8)
        assert 0 <= model.offline_gap_.bound <= 1e-7


@pytest.mark.parametrize("rank", [None, 10])
def test_samples_have_weights(rank: int | None) -> None:
    """One of weight 3 is three of it."""
    rng = np.random.default_rng(0)
    weighed, repeated = (
        CoCoARegressor(
            n_nodes=3,
            solver=ElasticNet(0.05, 0.7, rank=rank),
            fit_intercept=True,
            n_rounds=20,
            tol=1e-12,
        )
        for _ in range(2)
    )
    for seed in range(3):
        X, y = problem("tall", seed)
        often = rng.integers(1, 4, len(y))
        weighed.partial_fit(X, y, sample_weight=often)
        repeated.partial_fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    assert weighed.coef_ == pytest.approx(repeated.coef_, abs=1e-8)


def test_columns_that_are_scaled_as_the_stream_goes() -> None:
    model = CoCoARegressor(n_nodes=3, solver=ElasticNet(0.05, 0.7), scaling="running")
    rows, targets = [], []
    for i in range(3):
        X, y = problem("tall", i)
        rows.append(X * (1 + 3 * (np.arange(60) % 2) * i))
        targets.append(y)
        model.partial_fit(rows[-1], y)
    scale = np.concatenate([node.numbers["scale"] for node in model.node_states()[:3]])
    theirs = offline(np.vstack(rows) / scale, np.concatenate(targets), 0.05, 0.7)
    assert model.coef_ * scale == pytest.approx(theirs.coef_, abs=1e-8)


@pytest.mark.parametrize(("rank", "share", "times"), [(100, 0.1, 3), (12, 0.5, 20)])
def test_beyond_the_rank_the_past_is_remembered_as_far_as_it_goes(
    rank: int, share: float, times: float
) -> None:
    """Much better than the last task alone, close to all of them; less so where there is not even
    room for all weights. Nobody claims a gap."""
    rng = np.random.default_rng(1)
    p, alpha = 300, 0.02
    w = np.where(np.arange(p) < 20, rng.standard_normal(p), 0.0)
    tasks = [(X, X @ w + 0.5 * rng.standard_normal(60)) for X in rng.standard_normal((12, 60, p))]
    options: dict[str, Any] = dict(n_nodes=4, n_rounds=30, tol=1e-8)
    model = CoCoARegressor(solver=ElasticNet(alpha, 1.0, rank=rank), **options)
    for X, y in tasks:
        model.partial_fit(X, y)
    last = CoCoARegressor(solver=ElasticNet(alpha, 1.0), **options).partial_fit(*tasks[-1])
    A, b = np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
    whole = offline(A, b, alpha, 1.0)
    far, near, best = (float(np.sum((m.coef_ - w) ** 2)) for m in (last, model, whole))
    assert near < share * far and near < times * best
    assert model.offline_gap_.bound == np.inf
    assert model.node_states()[-1].kept["rows"].shape[1] <= rank


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rank", [None, 8])
def test_logistic_elastic_nets(K: int, intercept: bool, rank: int | None) -> None:
    X, y = problem("tall")
    labels = np.where(y > 1, 1, -1)
    alpha, rho, n = 0.02, 0.8, len(y)
    model = CoCoAClassifier(
        n_nodes=K,
        n_rounds=40,
        loss="logistic",
        solver=ElasticNet(alpha, rho, rank=rank),
        fit_intercept=intercept,
        tol=1e-9,
    ).partial_fit(X, labels)
    theirs = LogisticRegression(
        l1_ratio=rho,
        C=1 / (n * alpha),
        solver="saga",
        fit_intercept=intercept,
        tol=1e-12,
        max_iter=10**5,
    ).fit(X, labels)

    def value(m: Any) -> float:
        w = m.coef_[0]
        v = X @ w + m.intercept_
        penalty = rho * np.abs(w).sum() + 0.5 * (1 - rho) * w @ w
        return float(np.mean(np.logaddexp(0, -labels * v)) + alpha * penalty)

    ours, best = value(model), value(theirs)
    assert -1e-9 <= ours - best <= 1e-8 * best
    assert ours - best <= rounds_of(model, "bound")[-1] <= 1e-8
    assert len(model.history_) < 40


def test_a_logistic_stream_is_remembered() -> None:
    """As a quadratic: not exactly, but all tasks count."""
    rng = np.random.default_rng(0)
    w = np.where(np.arange(40) < 5, 2.0, 0.0)
    columns = rng.standard_normal((8, 80, 40))
    tasks = [(X, (X @ w + rng.logistic(size=80) > 0).astype(int)) for X in columns]
    options: dict[str, Any] = dict(n_nodes=3, loss="logistic", n_rounds=30, tol=1e-8)
    model, whole, alone = (CoCoAClassifier(solver=ElasticNet(0.01), **options) for _ in range(3))
    for X, y in tasks:
        model.partial_fit(X, y)
    whole.fit(np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks]))
    alone.fit(*tasks[-1])
    T = rng.standard_normal((5000, 40))
    truth = (T @ w > 0).astype(int)
    error = [float(np.mean(m.predict(T) != truth)) for m in (model, whole, alone)]
    assert error[0] < error[1] + 0.02 < error[2]


def test_columns_that_come_and_nodes_that_leave() -> None:
    """Columns that come late are as if they had been zero before; a node that leaves takes its
    columns with it, and the others make up for them."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(12)]
    blocks = [["c[0-3]", "c10"], ["c[4-9]", "c11"]]
    model = CoCoARegressor(partition=blocks, solver=ElasticNet(0.05))
    rows, targets = [], []
    for p in (10, 12, 12):
        X = rng.standard_normal((40, 12)) + rng.standard_normal((40, 1))
        y = X @ np.arange(12.0) + rng.standard_normal(40)
        model.partial_fit(pd.DataFrame(X[:, :p], columns=names[:p]), y)
        rows.append(np.where(np.arange(12) < p, X, 0.0))
        targets.append(y)
    A, b = np.vstack(rows), np.concatenate(targets)
    whole = offline(A, b, 0.05, 0.5)
    assert model.coef_ == pytest.approx(whole.coef_, abs=1e-7)
    cost = model.drop_node(1)
    stays = [0, 1, 2, 3, 10]
    less = offline(A[:, stays], b, 0.05, 0.5)
    assert model.coef_ == pytest.approx(less.coef_, abs=1e-7)
    before = objective(A, b, whole.coef_, 0.05, 0.5)
    after = objective(A[:, stays], b, less.coef_, 0.05, 0.5)
    assert cost.rise == pytest.approx(len(b) * (after - before), rel=1e-6)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    model.partial_fit(pd.DataFrame(X, columns=[names[j] for j in stays]), y)
    last = offline(np.vstack([A[:, stays], X]), np.concatenate([b, y]), 0.05, 0.5)
    assert model.coef_ == pytest.approx(last.coef_, abs=1e-7)


@pytest.mark.parametrize("kind", ["wide", "sparse", "correlated"])
@pytest.mark.parametrize("K", [1, 6])
def test_a_path_is_scikit_learns(kind: str, K: int) -> None:
    X, y = problem(kind)
    path = conche.elastic_net_path(X, y, l1_ratio=0.8, alphas=15, eps=0.01, n_nodes=K)
    alphas, coefs, _ = enet_path(X, y, l1_ratio=0.8, alphas=path.alphas, tol=1e-12, max_iter=10**6)
    assert path.alphas == pytest.approx(alphas) and path.coefs.shape == coefs.shape
    for j, alpha in enumerate(path.alphas):
        ours, best = (objective(X, y, w[:, j], alpha, 0.8) for w in (path.coefs, coefs))
        assert ours - best <= min(1e-8 * best, path.dual_gaps[j]) + 1e-14
    assert not np.any(path.coefs[:, 0])
    some = conche.elastic_net_path(X, y, l1_ratio=0.8, alphas=path.alphas[[3, 9]], n_nodes=K)
    assert some.coefs == pytest.approx(path.coefs[:, [3, 9]], abs=1e-4)


@pytest.mark.parametrize(
    ("X", "y", "options", "said"),
    [
        (np.ones((4, 2)), np.ones(3), {}, r"y has shape \(3,\)"),
        (np.ones((4, 2)), np.zeros(4), {}, "there is no path"),
        (np.ones((4, 2)), np.ones(4), {"alphas": [0.1, -1.0]}, "numbers above 0"),
        (np.ones((4, 2)), np.ones(4), {"alphas": 0}, "alphas=0 must be a whole number"),
        (np.ones((4, 2)), np.ones(4), {"l1_ratio": 0.0}, "l1_ratio=0.0 must be"),
    ],
)
def test_paths_that_cannot_be(X: Array, y: Array, options: dict[str, Any], said: str) -> None:
    with pytest.raises(conche.ConcheError, match=said):
        conche.elastic_net_path(X, y, **options)


def noisy_stream(seed: int, p: int = 80) -> tuple[Array, list[tuple[Array, Array]]]:
    rng = np.random.default_rng(seed)
    w = np.where(np.arange(p) < 8, rng.standard_normal(p), 0.0)
    columns = rng.standard_normal((10, 40, p))
    return w, [(X, X @ w + 2.0 * rng.standard_normal(40)) for X in columns]


def test_alpha_is_chosen_on_every_task_before_it_is_learnt() -> None:
    """Nearly as well as the best of nine does in hindsight, on streams that nobody looked at."""
    ratios = []
    for seed in range(100, 110):
        w, tasks = noisy_stream(seed)
        model = CoCoARegressor(n_nodes=4, solver=ElasticNet("auto", 1.0))
        for X, y in tasks:
            model.partial_fit(X, y)
        A, b = np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
        theirs = offline(A, b, model.alpha_, 1.0)
        assert model.coef_ == pytest.approx(theirs.coef_, abs=1e-8)
        largest = float(np.abs(A.T @ b).max() / len(b))
        found = [offline(A, b, share * largest, 1.0).coef_ for share in STRENGTHS]
        ours, *others = (float(np.sum((u - w) ** 2)) for u in (model.coef_, *found))
        ratios.append(ours / min(others))
    assert np.exp(np.mean(np.log(ratios))) < 1.5


def test_by_name_alpha_is_chosen() -> None:
    X, y = problem("tall")
    found = CoCoARegressor(4, solver="elastic-net").fit(X, y)
    told = CoCoARegressor(4, solver=ElasticNet("auto")).fit(X, y)
    assert np.array_equal(found.coef_, told.coef_) and found.alpha_ == told.alpha_ > 0


def test_a_chosen_alpha_is_saved_and_goes_on(tmp_path: Path) -> None:
    _, tasks = noisy_stream(0)
    model = CoCoARegressor(n_nodes=4, solver=ElasticNet("auto", 1.0), fit_intercept=True)
    for X, y in tasks[:5]:
        model.partial_fit(X, y)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    for X, y in tasks[5:]:
        model.partial_fit(X, y)
        again.partial_fit(X, y)
    assert np.array_equal(again.coef_, model.coef_) and again.alpha_ == model.alpha_


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid:RuntimeWarning")
@pytest.mark.parametrize("where", ["column 0", "the target"])
def test_what_overflows_is_refused(where: str) -> None:
    X, y = problem("tall")
    model = CoCoARegressor(n_nodes=2, solver=ElasticNet(0.1)).partial_fit(X, y)
    kept = model.coef_
    huge = (1e200 * X, y) if where == "column 0" else (X, 1e200 * y)
    with pytest.raises(conche.ConcheError, match=f"{where} is too large"):
        model.partial_fit(*huge)
    assert np.array_equal(model.coef_, kept)


def test_rows_are_mixed_so_that_none_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((50, 7))
    Q = mixed(np.eye(50), 0, 1)
    assert pytest.approx(np.eye(50), abs=1e-12) == Q.T @ Q and np.abs(Q).max() < 0.7
    assert mixed(X, 0, 1) == pytest.approx(Q @ X, abs=1e-12)
    monkeypatch.setenv("CONCHE_SHARED_SECRET", "between us")
    assert np.abs(mixed(X, 0, 1) - Q @ X).max() > 0.1


def test_nodes_that_do_not_share_the_secret_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    network = LocalNetwork()
    network.apart = True
    offered = CandidateBlock._offered

    def elsewhere(self: CandidateBlock, *about: Any) -> Array:
        with monkeypatch.context() as own:
            own.setenv("CONCHE_SHARED_SECRET", str(self.context.node))
            return offered(self, *about)

    X, y = problem("tall")
    model = CoCoARegressor(n_nodes=2, solver=ElasticNet(0.1), network=network).partial_fit(X, y)
    kept = model.coef_
    with monkeypatch.context() as patch:
        patch.setattr(CandidateBlock, "_offered", elsewhere)
        with pytest.raises(conche.NodeError, match="CONCHE_SHARED_SECRET must be the same for"):
            model.partial_fit(X, y)
    assert np.array_equal(model.coef_, kept)


@pytest.mark.parametrize(
    ("kind", "steps", "K", "alpha", "rho"),
    [
        *product(("tall", "wide", "sparse"), ("safe", "adaptive"), (1, 8), (0.1,), (0.5,)),
        *product(("tall", "wide", "sparse"), ("adaptive",), (1, 8), (0.02,), (1.0,)),
        ("correlated", "adaptive", 8, 0.1, 0.5),
    ],
)
def test_plain_rounds_have_scikit_learns_objective(
    kind: str, steps: Any, K: int, alpha: float, rho: float
) -> None:
    X, y = problem(kind)
    theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-13, max_iter=10**6)
    best = objective(X, y, theirs.fit(X, y).coef_, alpha, rho)
    model = CoCoARegressor(
        n_nodes=K, n_rounds=1500, solver=ElasticNet(alpha, rho, rank=0), steps=steps, tol=1e-6
    ).partial_fit(X, y)
    ours = objective(X, y, model.coef_, alpha, rho)
    assert -1e-12 <= ours - best <= 1e-6 * best
    assert ours - best <= rounds_of(model, "bound")[-1]  # certified
    assert np.mean(model.coef_ == 0) > 0.3


def test_the_bound_holds_in_every_round_and_the_objective_never_grows() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = problem(["tall", "wide", "sparse", "correlated"][seed % 4], seed)
        alpha, rho = 10 ** rng.uniform(-2, 0), rng.uniform(0.1, 1)
        theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-12)
        theirs.set_params(max_iter=10**6)
        best = objective(X, y, theirs.fit(X, y).coef_, alpha, rho)
        last = np.inf
        for rounds in (1, 2, 4, 8):
            model = CoCoARegressor(
                n_nodes=5,
                n_rounds=rounds,
                solver=ElasticNet(alpha, rho, rank=0),
                steps="adaptive" if seed % 2 else "safe",
            ).partial_fit(X, y)
            now = objective(X, y, model.coef_, alpha, rho)
            bound = rounds_of(model, "bound")[-1]
            assert bound >= 0 and now - best <= bound + 1e-12 and now <= last * (1 + 1e-12)
            last = now


@pytest.mark.parametrize("K", [1, 3])
def test_logistic_loss_with_an_l1_penalty(K: int) -> None:
    X, y = problem("tall")
    labels = np.where(y > 0, 1, -1)
    alpha, n = 0.02, len(y)
    model = CoCoAClassifier(
        n_nodes=K,
        n_rounds=3000,
        loss="logistic",
        solver=ElasticNet(alpha, l1_ratio=1.0, rank=0),
        steps="adaptive",
        tol=1e-7,
    ).partial_fit(X, labels)
    theirs = LogisticRegression(
        l1_ratio=1.0,
        C=1 / (n * alpha),
        solver="saga",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**5,
    ).fit(X, labels)

    def value(w: Array) -> float:
        return float(np.mean(np.logaddexp(0, -labels * (X @ w))) + alpha * np.abs(w).sum())

    ours, best = value(model.coef_[0]), value(theirs.coef_[0])
    assert abs(ours - best) <= 1e-6 * best and ours - best <= rounds_of(model, "bound")[-1]


@pytest.mark.parametrize("kind", ["tall", "sparse", "far from zero"])
@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("rank", [0, None])
def test_the_intercept_is_not_penalised(kind: str, K: int, rank: int | None) -> None:
    X, y = problem("tall" if kind == "far from zero" else kind)
    y = y + 5.0
    if kind == "far from zero":
        X = X + (5.0 if K == 1 else 0.5)
    theirs = Theirs(alpha=0.05, l1_ratio=0.7, tol=1e-12, max_iter=10**6).fit(X, y)
    model = CoCoARegressor(
        n_nodes=K,
        n_rounds=800,
        solver=ElasticNet(0.05, l1_ratio=0.7, rank=rank),
        fit_intercept=True,
        steps="adaptive",
    ).partial_fit(X, y)
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)
    ours, best = (objective(X, y - m.intercept_, m.coef_, 0.05, 0.7) for m in (model, theirs))
    bound = rounds_of(model, "bound")[-1]
    assert -1e-12 <= ours - best <= min(1e-6 * best, bound) and bound <= 1e-3 * best


def test_only_the_intercept_is_free() -> None:
    """A column that happens to be constant in a task is penalised as any other."""
    X, y = problem("tall")
    X[:, 3] = 1.0
    for rows in (slice(None), slice(0, 1)):
        theirs = Theirs(alpha=1.0, fit_intercept=False, tol=1e-12, max_iter=10**5)
        model = CoCoARegressor(solver=ElasticNet(1.0)).partial_fit(X[rows], y[rows])
        assert model.coef_ == pytest.approx(theirs.fit(X[rows], y[rows]).coef_, abs=1e-8)


def test_indices_of_any_width() -> None:
    X, y = problem("sparse")
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [CoCoARegressor(n_nodes=2, solver=ElasticNet(0.1)) for _ in range(2)]
    assert np.array_equal(models[0].fit(X, y).coef_, models[1].fit(wide, y).coef_)


def test_tasks_are_warm_started() -> None:
    """The same task again takes few rounds; a similar one fewer than from nothing."""
    X, y = problem("wide")
    options: dict[str, Any] = dict(
        n_nodes=4, n_rounds=500, solver=ElasticNet(0.05, rank=0), tol=1e-4, steps="adaptive"
    )
    model = CoCoARegressor(**options).partial_fit(X, y)
    first = len(model.history_)
    model.partial_fit(X, y)
    assert len(model.history_) - first < first / 2
    cold = CoCoARegressor(**options).partial_fit(X, y + 0.01)
    before = len(model.history_)
    model.partial_fit(X, y + 0.01)
    assert len(model.history_) - before < len(cold.history_)


def test_saving_two_outputs_and_single_precision(tmp_path: Path) -> None:
    X, y = problem("tall")
    Y = np.column_stack([y, -(y**2)])
    model = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1)).partial_fit(X, Y)
    for j in range(2):
        single = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1))
        assert single.partial_fit(X, Y[:, j]).coef_ == pytest.approx(model.coef_[j], abs=1e-9)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    for one in (model, again):
        one.partial_fit(X, -Y)
    assert np.array_equal(model.coef_, again.coef_)
    small = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1))
    small.partial_fit(X.astype(np.float32), Y.astype(np.float32))
    assert small.coef_.dtype == np.float32


@ray_there
def test_on_ray(network: Any) -> None:
    X, y = problem("wide")
    models = [
        CoCoARegressor(n_nodes=2, n_rounds=20, solver=ElasticNet(0.1), network=n)
        for n in ("local", network)
    ]
    for model in models:
        model.partial_fit(X, y)
    assert models[0].coef_ == pytest.approx(models[1].coef_, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(solver=ElasticNet(0.0)), "alpha=0.0 must be a number of at least 1e-100"),
        (dict(solver=ElasticNet(1e308)), "alpha=1e\\+308 must be"),
        (dict(solver=ElasticNet("auto", rank=0)), "alpha='auto' needs a rank above 0"),
        (dict(solver=ElasticNet("most")), "alpha='most' must be a number .* or 'auto'"),
        (dict(solver=ElasticNet(0.1, 0.0)), "l1_ratio=0.0 must be a number of at least 1e-06"),
        (dict(solver=ElasticNet(0.1, 2)), "l1_ratio=2 must be .* and at most 1"),
        (dict(solver=ElasticNet(0.1, rank=0), steps="cg"), "whose proposals are not linear"),
        (dict(solver=ElasticNet(0.1, rank=-1)), "rank=-1 must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    X, y = problem("tall")
    with pytest.raises(conche.ParameterError, match=said) as error:
        CoCoARegressor(**options).fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["C", "F", "single", "csr", "csc"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(600, 90), (80, 200)])
def test_working_sets_end_where_scikit_learn_does(
    kind: str, intercept: bool, shape: tuple[int, int]
) -> None:
    """Whether by inner products (many rows) or by the columns themselves, and whatever these are
    kept as: no copy of them is centred."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random(shape) < 0.3, rng.normal(size=shape) + 0.5, 0.0)
    y = X[:, :9] @ rng.normal(size=9) + 0.3 * rng.normal(size=shape[0]) + 2.0 * intercept
    alpha = 0.05 * np.abs(X.T @ (y - y.mean() * intercept)).max() / len(y)
    theirs = Theirs(alpha, l1_ratio=0.8, fit_intercept=intercept, tol=1e-13, max_iter=100_000)
    wanted = theirs.fit(X, y).coef_
    block = X.astype("f4") if kind == "single" else np.asarray(X, order="F" if kind == "F" else "C")
    if kind.startswith("cs"):
        block = sparse.csr_array(X).asformat(kind)
    columns = Columns(block, np.ones(len(y)) if intercept else None)
    penalty = Penalty.like_theirs(len(y) * alpha, 0.8)
    found = on_working_sets(columns, columns.level(y), np.zeros(shape[1]), penalty, EXACT)
    close = 1e-4 if kind == "single" else 1e-8
    np.testing.assert_allclose(found, wanted, atol=close * np.abs(wanted).max())
