"""Local solvers: every path to the same update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import conche
from conche.common.arrays import (
    Array,
    as_dense,
    by_columns,
    column_squares,
    scale_columns,
    scale_rows,
    times,
)
from conche.network import LocalNetwork
from conche.nodes.solvers import Solution, factor
from conche.nodes.solvers.factor import Factored, Iterative, Spectral, Tall, Wide, factorise

SHAPES = [(40, 12), (12, 40), (20, 20), (7, 1), (1, 7)]


def solved(sub: Factored, g: Array) -> Solution:
    nothing = np.zeros((sub.size, g.shape[1]))
    return sub.solve(g, nothing, nothing)


def update(sub: Factored, g: Array) -> Array:
    return sub.lift(solved(sub, g).z)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_all_paths_agree(shape: tuple[int, int], ridge: float) -> None:
    rng = np.random.default_rng(0)
    A, g = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    expected = np.linalg.pinv(np.vstack([A, np.sqrt(ridge) * np.eye(shape[1])]))[:, : shape[0]] @ g
    paths: list[Factored] = [
        factorise(A, ridge),
        Spectral(A, ridge, 1.0),
        Iterative(sparse.csr_array(A), ridge, 1.0),
    ]
    for sub in paths:
        np.testing.assert_allclose(update(sub, g), expected, rtol=1e-8, atol=1e-10)
        z = solved(sub, g).z
        np.testing.assert_allclose(sub.image(z), A @ sub.lift(z), rtol=1e-8, atol=1e-10)


def test_the_path_follows_the_condition() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 10))
    assert type(factorise(A)) is Tall
    assert type(factorise(A.T)) is Wide
    bad = A.copy()
    bad[:, 1] = bad[:, 0] * (1 + 1e-5 * rng.standard_normal(50))  # condition about 1e5
    assert type(factorise(bad)) is Spectral
    g = rng.standard_normal((50, 1))
    np.testing.assert_allclose(update(factorise(bad), g), np.linalg.pinv(bad) @ g, rtol=1e-7)
    assert type(factorise(bad, ridge=1.0)) is Tall


def test_cut_off_is_the_documented_one() -> None:
    U, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 3)))
    cut = 30 * np.finfo(float).eps
    assert Spectral(U * [1, 0.5, 3 * cut], 0.0, 1.0).rank == 3
    assert Spectral(U * [1, 0.5, 0.3 * cut], 0.0, 1.0).rank == 2


@pytest.mark.parametrize("n", [40, 8])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_damped_solves_its_equation(n: int, loss: str) -> None:
    """(K/tau A_k^T A_k + mu n I) Delta = A_k^T g."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 12)), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    model = conche.CoCoAClassifier(n_nodes=3, solver=conche.Damped(0.7), loss=loss).fit(X, y)
    tau, g = (1, y) if loss == "squared" else (4, y / 2)
    for b in model.partition_:
        A = X[:, b]
        expected = np.linalg.solve(3 / tau * A.T @ A + 0.7 * n * np.eye(4), A.T @ g)
        np.testing.assert_allclose(model.coef_[0, b], expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_default_damping_is_scale_free(scale: float) -> None:
    (task,) = conche.gaussian_tasks(1, 30, 20, noise_var=0.1)
    one = conche.CoCoARegressor(n_nodes=4, solver="damped", n_rounds=3).fit(task.X, task.y)
    other = conche.CoCoARegressor(n_nodes=4, solver="damped", n_rounds=3).fit(
        scale * task.X, task.y
    )
    np.testing.assert_allclose(other.coef_ * scale, one.coef_, rtol=1e-9)


def test_damped_with_little_damping_is_exact() -> None:
    (task,) = conche.gaussian_tasks(1, 30, 20, noise_var=0.1)
    exact = conche.CoCoARegressor(n_nodes=4).fit(task.X, task.y)
    damped = conche.CoCoARegressor(n_nodes=4, solver=conche.Damped(0)).fit(task.X, task.y)
    np.testing.assert_allclose(damped.coef_, exact.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "solver", [conche.Exact(), conche.Damped(0.1), conche.Memory(ridge=0.1)], ids=repr
)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_equals_dense(solver: Any, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for side in (factor.SPARSE_GRAM_SIDE, 0):  # through the Gram matrix, and by LSMR
        monkeypatch.setattr(factor, "SPARSE_GRAM_SIDE", side)
        dense = conche.CoCoARegressor(n_nodes=3, solver=solver, n_rounds=2)
        thin = conche.CoCoARegressor(n_nodes=3, solver=solver, n_rounds=2)
        for n in (70, 12):
            X = sparse.random_array((n, 60), density=0.4, rng=rng, format=layout)
            y = rng.standard_normal(n)
            dense.partial_fit(X.toarray(), y)
            thin.partial_fit(X, y)
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(thin.predict(X), dense.predict(X.toarray()), atol=1e-6)


@pytest.mark.parametrize("solver", ["exact", "damped", "memory"])
def test_sparse_entries_may_be_given_in_parts(solver: str) -> None:
    rng = np.random.default_rng(0)
    whole = sparse.random_array((40, 30), density=0.3, rng=rng, format="coo")
    rows, columns = whole.coords
    both = (np.concatenate([rows, rows]), np.concatenate([columns, columns]))
    halves = sparse.coo_array((np.concatenate([whole.data / 2] * 2), both), shape=(40, 30))
    X = sparse.csr_array(halves)
    parts = sparse.csr_array((40, 30))
    parts.data, parts.indices = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2)
    parts.indptr = 2 * X.indptr
    y = rng.standard_normal(40)
    coefs = [conche.CoCoARegressor(n_nodes=3, solver=solver).fit(A, y).coef_ for A in (X, parts)]
    np.testing.assert_allclose(coefs[1], coefs[0], rtol=1e-10)


def test_an_ill_conditioned_sparse_block_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "SPARSE_GRAM_SIDE", 0)
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 310), density=0.01, rng=rng, format="csr")
    with pytest.warns(ConvergenceWarning, match="ill conditioned; try solver='damped'"):
        conche.CoCoARegressor(n_nodes=1).fit(X, np.ones(300))


@pytest.mark.parametrize("solver", ["exact", "damped", "memory"])
def test_threads_change_nothing(solver: str) -> None:
    tasks = conche.gaussian_tasks(2, 600, 480, n_shared=300)
    coefs = []
    for threads in (1, 2, 3):
        network = LocalNetwork(n_threads=threads)
        model = conche.CoCoARegressor(n_nodes=5, solver=solver, n_rounds=2, network=network)
        for task in tasks:
            model.partial_fit(task.X, task.y)
        coefs.append(model.coef_)
    np.testing.assert_allclose(coefs[1], coefs[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(coefs[2], coefs[1])


def test_large_tall_blocks_are_laid_out_by_columns() -> None:
    X = np.random.default_rng(0).standard_normal((5000, 1000))
    block = X[:, :600]
    laid = by_columns(block)
    assert laid.strides[0] == 8
    assert np.array_equal(laid, block)
    assert by_columns(X[:100, :60]).base is X


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("columns", [1, 2, 4, 5])
def test_narrow_products_and_stretched_columns(kind: str, columns: int) -> None:
    rng = np.random.default_rng(0)
    plain = np.where(rng.random((30, 20)) < 0.3, rng.normal(size=(30, 20)), 0.0)
    block = plain if kind == "dense" else sparse.csr_array(plain).asformat(kind)
    z, rows, scale = rng.normal(size=(20, columns)), rng.random(30), rng.random(20)
    np.testing.assert_allclose(times(block, z), plain @ z, atol=1e-14)
    np.testing.assert_allclose(as_dense(scale_rows(block, rows)), rows[:, None] * plain)
    np.testing.assert_allclose(as_dense(scale_columns(block, scale)), plain * scale)
    np.testing.assert_allclose(column_squares(block), np.sum(plain**2, axis=0), atol=1e-14)


def test_a_given_ridge_is_used_as_it_is_whatever_the_columns() -> None:
    """In the unit that scaling says; and none means none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) * [1.0, 1e3, 1e-3, 1.0] + 5
    for ridge in (1e-9, 3.0, 1e6, 0.0):
        for scaling, unit in ((None, np.ones(4)), ("standard", X.std(axis=0))):
            solver = conche.Memory(ridge=ridge)
            model = conche.ConcheRegressor(2, solver=solver, scaling=scaling).fit(X, X[:, 0])
            np.testing.assert_allclose(model.ridge_, ridge * unit**2, rtol=1e-12)
            expected = Ridge(alpha=ridge, solver="svd").fit((X - X.mean(axis=0)) / unit, X[:, 0])
            np.testing.assert_allclose(model.coef_ * unit, expected.coef_, atol=1e-9)
