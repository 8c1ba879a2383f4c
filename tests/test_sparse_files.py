"""Sparse columns: from files, learnt without ever being dense, and as well as offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge

import conche
from conche.common.arrays import Array
from conche.network import principal
from conche.nodes.solvers.cholesky import Bordered

from .helpers.commands import run_here as run
from .helpers.models import rounds_of

pytestmark = pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")

P = 3000  # columns: more than memory keeps without loss


def task(seed: int, n: int = 40, p: int = P) -> tuple[Any, Array]:
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=0.01, rng=rng, format="csr")
    return X, np.asarray(X[:, :50].sum(axis=1)).ravel() + 0.01 * rng.standard_normal(n)


def written(folder: Path, kind: str, count: int = 3) -> Path:
    folder.mkdir()
    for t in range(count):
        X, y = task(t)
        if kind == "svm":
            dump_svmlight_file(X, y, str(folder / f"{t}.svm"))
        else:
            sparse.save_npz(folder / f"{t}.npz", X)
            np.save(folder / f"{t}.{kind}", y)
    return folder


@pytest.mark.parametrize("kind", ["y.npy", "svm"])
def test_a_stream_of_sparse_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained, tested and predicted with, and nothing as tall as a task and as wide as its columns
    is ever dense."""
    written(tmp_path / "s", kind)

    def dense(self: Any, *_: Any, **__: Any) -> Any:
        if min(self.shape) > 1 and np.prod(self.shape) > 40 * P / 2:
            raise AssertionError(f"a matrix of shape {self.shape} became dense")
        return real(self)

    real = sparse.csc_array.toarray
    for matrix in (sparse.csc_array, sparse.csr_array, sparse.csc_matrix, sparse.csr_matrix):
        monkeypatch.setattr(matrix, "toarray", dense)
    done = run("train", "s", "--target", "y", "--nodes", "3", "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("evaluate", "m", "s", "--target", "y", cwd=tmp_path)
    assert done.returncode == 0 and "average" in done.stdout
    done = run("predict", "m", next((tmp_path / "s").glob("0.*[zm]")), cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 41
    model = conche.load(tmp_path / "m")
    assert model.n_features_in_ == P
    twin = conche.ConcheRegressor(n_nodes=3)
    for t in range(3):
        twin.partial_fit(*task(t))
    np.testing.assert_allclose(model.coef_, twin.coef_, rtol=1e-6, atol=1e-9)


def test_files_may_be_of_different_widths(tmp_path: Path) -> None:
    """What a file does not have is zero, and the widest file counts from the start."""
    (tmp_path / "s").mkdir()
    for t, p in enumerate((5, 9, 7)):
        X, y = task(t, p=p)
        dump_svmlight_file(X, np.arange(len(y)), str(tmp_path / "s" / f"{t}.svm"))
    stream = conche.FileStream(tmp_path / "s")
    assert [t.X.shape for t in stream] == [(40, len(stream.columns))] * 3
    first = stream.task(0).X
    assert sparse.issparse(first.read()) and first.read()[:, 5:].nnz == 0
    np.testing.assert_allclose(first.read().toarray()[:, :5], task(0, p=5)[0].toarray())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [1, 3])
def test_one_round_solves_a_task_of_sparse_columns(
    intercept: bool, K: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all rows known, the first proposal is the solution: what merged directions reach in
    many rounds."""
    solver = conche.Memory(rank=20, ridge=0.05)
    kind: dict[str, Any] = dict(n_nodes=K, solver=solver, fit_intercept=intercept)
    model = conche.ConcheRegressor(**kind, n_rounds=1)
    slow = conche.ConcheRegressor(**kind, n_rounds=500, tol=1e-13)
    for t in range(4):
        model.partial_fit(*task(t))
        with monkeypatch.context() as other:
            other.setattr(principal, "MOST_ROWS", 0)
            slow.partial_fit(*task(t))
        assert rounds_of(model, "bound")[-1] < 1e-12
        if t < 2:  # later ones go on from merges that were found in another way
            np.testing.assert_allclose(model.coef_, slow.coef_, atol=2e-6)
    assert len(model.history_) == 4 < len(slow.history_)
    np.testing.assert_allclose(model.predict(task(9)[0]), slow.predict(task(9)[0]), atol=2e-2)
    X, y = task(0)
    alone = conche.ConcheRegressor(**kind, n_rounds=1).partial_fit(X, y)
    ridge = Ridge(
        0.05, fit_intercept=intercept, tol=1e-12, solver="sparse_cg" if intercept else "lsqr"
    )
    np.testing.assert_allclose(alone.coef_, ridge.fit(X, y).coef_, atol=1e-6)


def test_a_bordered_matrix() -> None:
    rng = np.random.default_rng(0)
    B, b = rng.standard_normal((6, 9)), 1e4 * rng.standard_normal(6)
    factor = Bordered(B @ B.T, b)
    whole = np.eye(6) + B @ B.T + np.outer(b, b)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(whole)[1], rel=1e-9)
    c, rho = rng.standard_normal((6, 2)), rng.standard_normal(2)
    t, zeta = np.split(factor.solve(np.vstack([c, rho])), [6])
    left = (np.eye(6) + B @ B.T) @ t - b[:, None] * zeta
    np.testing.assert_allclose(left, c, atol=1e-9)
    np.testing.assert_allclose(b @ t + zeta[0], rho, atol=1e-9)


def test_sparse_columns_keep_little(tmp_path: Path) -> None:
    """Directions take 20 MB at most, and no block is kept as a matrix."""
    X, y = task(0, n=100, p=20_000)
    model = conche.ConcheRegressor(n_nodes=10).partial_fit(X, y).partial_fit(*task(1, 100, 20_000))
    kept = [node.kept for node in model.node_states()]
    assert {state["remainder"].ndim for state in kept} == {1}
    assert sum(state["principal"].nbytes for state in kept) <= 21e6
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m").partial_fit(*task(2, 100, 20_000))
    assert np.array_equal(again.coef_, model.partial_fit(*task(2, 100, 20_000)).coef_)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / "1.y.npy").unlink(), "1.npz: no column 'y' for the target"),
        (lambda f: np.save(f / "1.y.npy", np.ones(7)), "1.y.npy: shape (7,) for 40 rows"),
        (lambda f: np.save(f / "1.y.npy", np.full(40, np.nan)), "1.y.npy: missing or infinite"),
        (lambda f: (f / "1.y.npy").write_bytes(b"junk"), "1.y.npy: cannot be read"),
        (lambda f: _damaged(f / "1.npz"), "1.npz: cannot be read"),
        (lambda f: _not_finite(f / "1.npz"), "1.npz: column 'x7' has missing or infinite values"),
    ],
)
def test_bad_sparse_files_are_named(spoil: Any, said: str, tmp_path: Path) -> None:
    spoil(written(tmp_path / "s", "y.npy"))
    done = run("train", "s", "--target", "y", "--nodes", "2", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


def _damaged(path: Path) -> None:
    """A matrix with an index beyond its columns, which could crash a product."""
    parts = dict(format=b"csr", shape=np.array([40, P]), data=np.ones(40))
    np.savez(path, indices=np.full(40, P + 5), indptr=np.arange(41), **parts)  # type: ignore[arg-type]  # by name


def _not_finite(path: Path) -> None:
    X = task(1)[0].tolil()
    X[3, 7] = np.inf
    sparse.save_npz(path, sparse.csr_array(X))


def test_bad_svmlight_is_named(tmp_path: Path) -> None:
    written(tmp_path / "s", "svm")
    (tmp_path / "s" / "1.svm").write_text("1 3:0.5\n2 nonsense\n")
    done = run("train", "s", "--target", "y", "--nodes", "2", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "1.svm: cannot be read" in done.stderr
    done = run("train", "s", "--target", "label", "--nodes", "2", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "no column 'label' for the target" in done.stderr
    done = run("plan", "--data", "s", cwd=tmp_path)
    assert done.returncode == 2
