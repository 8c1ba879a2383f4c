"""Errors as the paper defines them, the error matrix, and the offline solution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import toeplitz
from sklearn.base import BaseEstimator

import conche
from conche import Task
from conche.common.arrays import Array


def truth(task: Task) -> tuple[Array, float]:
    assert task.weights is not None and task.noise_var is not None
    return task.weights, task.noise_var


def test_generalization_error_is_the_expected_squared_error() -> None:
    tasks = conche.gaussian_tasks(3, 4, 6, n_shared=2, noise_var=[0.1, 0.2, 0.3])
    w = np.random.default_rng(0).standard_normal(6)
    expected = np.mean([np.sum((w - own) ** 2) + noise for own, noise in map(truth, tasks)])
    assert conche.generalization_error(w, tasks) == pytest.approx(expected)


def test_generalization_error_is_weighted_by_the_covariance() -> None:
    """Against fresh samples: (w - w*)^T Sigma (w - w*) + sigma^2."""
    tasks = conche.gaussian_tasks(1, 50_000, 6, noise_var=0.1, correlation=0.8)
    w = np.ones(6)
    e = w - truth(tasks[0])[0]
    sigma = toeplitz(0.8 ** np.arange(6))
    assert conche.generalization_error(w, tasks) == pytest.approx(e @ sigma @ e + 0.1)
    squared = (tasks[0].X @ w - tasks[0].y) ** 2
    stderr = squared.std() / np.sqrt(len(squared))
    assert abs(squared.mean() - conche.generalization_error(w, tasks)) < 4 * stderr


def test_training_error_has_the_papers_half() -> None:
    tasks = conche.gaussian_tasks(2, [5, 8], 6)
    w = np.ones(6)
    expected = np.mean([np.mean((t.X @ w - t.y) ** 2) / 2 for t in tasks])
    assert conche.training_error(w, tasks) == pytest.approx(expected)


def test_errors_need_what_they_measure() -> None:
    tasks = [Task(np.ones((3, 2)), np.ones(3), name="May")]
    with pytest.raises(ValueError, match="task May has no true weights"):
        conche.generalization_error(np.ones(2), tasks)
    with pytest.raises(ValueError, match="coef is for 3 columns, but task May has 2"):
        conche.training_error(np.ones(3), tasks)
    with pytest.raises(ValueError, match="there are no tasks"):
        conche.training_error(np.ones(3), [])


class Table(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A 'model' whose test error on task j after task i is a given number."""

    seen = -1

    def __init__(self, R: Any = None):
        self.R = R

    def partial_fit(self, X: Array, y: Array) -> None:
        self.seen += 1

    def predict(self, X: Array) -> Array:
        return np.asarray(np.sqrt(self.R[self.seen][int(X[0, 0])]) * np.ones(len(X)))


def test_error_matrix_and_forgetting_by_hand() -> None:
    R = [[1.0, 9.0, 9.0], [0.5, 2.0, 9.0], [4.0, 5.0, 3.0]]
    tasks = [Task(np.full((2, 1), float(j)), np.zeros(2)) for j in range(3)]
    result = conche.error_matrix(Table(R), tasks, tasks)
    np.testing.assert_allclose(np.asarray(result), R)
    assert result[1, 0] == pytest.approx(0.5)
    assert result.average == pytest.approx(4.0)
    assert result.forgetting == pytest.approx(((4 - 1) + (5 - 2)) / 2)
    assert result.forgetting_from_best == pytest.approx(((4 - 0.5) + (5 - 2)) / 2)
    np.testing.assert_allclose(result.seen, [1.0, 1.25, 4.0])


def test_error_matrix_trains_a_copy() -> None:
    tasks = conche.gaussian_tasks(3, 30, 6)
    model = conche.CoCoARegressor(n_nodes=2)
    result = conche.error_matrix(model, tasks, tasks)
    assert not hasattr(model, "coef_")
    assert result.model.n_tasks_seen_ == 3
    last = [np.mean((t.y - result.model.predict(t.X)) ** 2) for t in tasks]
    np.testing.assert_allclose(result[-1], last)
    with pytest.raises(ValueError, match="3 training tasks but 2 test tasks"):
        conche.error_matrix(model, tasks, tasks[:2])


def test_error_matrix_counts_mistakes_of_classifiers() -> None:
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    tasks = [Task(X, np.array([1, 0, 1, 0])), Task(X, np.array([1, 0, 0, 0]))]
    result = conche.error_matrix(conche.CoCoAClassifier(), tasks[:1], tasks[:1])
    assert result[0, 0] == 0
    result = conche.error_matrix(conche.CoCoAClassifier(), tasks, tasks)
    assert result[0, 1] == 0.25


def stack(tasks: Sequence[Task]) -> tuple[Array, Array]:
    return np.vstack([t.X for t in tasks]), np.concatenate([t.y for t in tasks])


@pytest.mark.parametrize("p", [10, 60, 300])
@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("thin", [False, True])
def test_offline_solution_is_minimum_norm_least_squares(p: int, damaged: bool, thin: bool) -> None:
    tasks = conche.gaussian_tasks(4, [20, 35, 10, 40], p, noise_var=0.5)
    if damaged:  # duplicate columns and rows: no Gram matrix is invertible
        for t in tasks:
            t.X[:, 1] = t.X[:, 0]
            t.X[1], t.y[1] = t.X[0], t.y[0]
    X, y = stack(tasks)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    if thin:
        tasks = [Task(sparse.csr_array(t.X), t.y) for t in tasks]
    actual = conche.offline_solution(tasks)
    assert np.linalg.norm(actual - expected) <= 1e-7 * np.linalg.norm(expected)


@pytest.mark.parametrize("p", [10, 300])
def test_offline_ridge_and_several_outputs(p: int) -> None:
    tasks = conche.gaussian_tasks(3, 20, p)
    X, y = stack(tasks)
    expected = np.linalg.solve(X.T @ X + 2 * np.eye(p), X.T @ y)
    np.testing.assert_allclose(conche.offline_solution(tasks, ridge=2.0), expected, rtol=1e-8)
    double = [Task(t.X, np.column_stack([t.y, -t.y])) for t in tasks]
    np.testing.assert_allclose(
        conche.offline_solution(double, ridge=2.0), [expected, -expected], rtol=1e-8
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, bool])
def test_offline_computes_in_double_precision(dtype: Any) -> None:
    most = 2 if dtype is bool else 200
    X = np.random.default_rng(0).integers(0, most, (40, 3)).astype(dtype)
    for wrap in (np.asarray, sparse.csr_array):
        w = conche.offline_solution([Task(wrap(X), X.astype(float) @ [1.0, 2.0, 3.0])], ridge=1e-6)
        np.testing.assert_allclose(w, [1.0, 2.0, 3.0], rtol=1e-5)


def test_shapes_are_matched_not_broadcast() -> None:
    X = np.eye(3)
    flat, column = Task(X, np.ones(3)), Task(X, np.ones((3, 1)))
    for task in (flat, column):
        for coef in (np.zeros(3), np.zeros((1, 3))):
            assert conche.training_error(coef, [task]) == 0.5
    with pytest.raises(ValueError, match=r"y has shape \(3,\), predictions \(3, 2\)"):
        conche.training_error(np.zeros((2, 3)), [flat])


def test_offline_refuses_what_does_not_fit() -> None:
    tasks = [Task(np.ones((3, 2)), np.ones(3)), Task(np.ones((3, 4)), np.ones(3))]
    with pytest.raises(ValueError, match=r"different numbers of columns: \[2, 4\]"):
        conche.offline_solution(tasks)
    with pytest.raises(ValueError, match="no tasks"):
        conche.offline_solution([])
    with pytest.raises(ValueError, match="ridge=-1 must be"):
        conche.offline_solution(tasks[:1], ridge=-1)
    with pytest.raises(ValueError, match="task May has missing or infinite values"):
        conche.offline_solution([Task(np.full((3, 2), np.nan), np.ones(3), name="May")])
    with pytest.raises(ValueError, match="different numbers of outputs"):
        conche.offline_solution([tasks[0], Task(np.ones((3, 2)), np.ones((3, 2)))])


def test_transfer_frames_and_pictures(tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(4, 60, 10, n_shared=10, noise_var=0.1)
    R = conche.error_matrix(conche.ConcheRegressor(2), tasks, tasks)
    untrained = [float(np.mean(t.y**2)) for t in tasks]
    before = np.mean([untrained[j] - R[j - 1, j] for j in range(1, 4)])
    assert R.forward_transfer == pytest.approx(before) and R.forward_transfer > 0
    assert R.backward_transfer == -R.forgetting
    frame = R.to_frame()
    assert frame.shape == (4, 4) and np.array_equal(frame.to_numpy(), R.values)
    assert frame.index.name == "after" and list(frame.columns) == ["1", "2", "3", "4"]
    R.plot().figure.savefig(tmp_path / "R.png")
    assert (tmp_path / "R.png").stat().st_size > 5000
    with pytest.raises(conche.ParameterError, match="untrained"):
        _ = conche.ErrorMatrix(R.values).forward_transfer
