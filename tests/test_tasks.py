"""Tasks: the paper's model, digits, cosine features; what does not fit together is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

import conche
from conche.errors import DataError, ParameterError
from conche.tasks import embedded_digits, toeplitz_norm


def test_weights_follow_section_iv() -> None:
    tasks = conche.gaussian_tasks(5, 10, 40, n_shared=30)
    W = np.array([t.weights for t in tasks])
    assert np.ptp(W[:, :30], axis=0).max() == 0
    np.testing.assert_allclose(np.sum(W[:, :30] ** 2, axis=1), 0.75)
    np.testing.assert_allclose(np.sum(W**2, axis=1), 1.0)
    assert np.linalg.matrix_rank(W[:, 30:]) == 5


@pytest.mark.parametrize("n_shared", [0, 40])
def test_all_or_nothing_shared(n_shared: int) -> None:
    W = np.array([t.weights for t in conche.gaussian_tasks(3, 5, 40, n_shared=n_shared)])
    np.testing.assert_allclose(np.sum(W**2, axis=1), 1.0)
    assert np.linalg.matrix_rank(W) == (1 if n_shared else 3)


def test_noise_and_sizes_per_task() -> None:
    tasks = conche.gaussian_tasks(2, [4000, 2000], 5, noise_var=[0.25, 4.0])
    for task, n, var in zip(tasks, (4000, 2000), (0.25, 4.0), strict=True):
        assert task.X.shape == (n, 5)
        measured = np.var(task.y - task.X @ task.weights)
        assert abs(measured - var) < 4 * var * np.sqrt(2 / n)


def test_one_seed_and_a_prefix_property() -> None:
    a = conche.gaussian_tasks(3, 8, 6, n_shared=3, seed=7)
    b = conche.gaussian_tasks(3, 8, 6, n_shared=3, seed=7)
    c = conche.gaussian_tasks(3, 8, 6, n_shared=3, seed=8)
    assert all(
        np.array_equal(s.X, t.X) and np.array_equal(s.y, t.y) for s, t in zip(a, b, strict=True)
    )
    assert not np.array_equal(a[0].X, c[0].X)
    longer = conche.gaussian_tasks(5, 8, 6, n_shared=3, seed=7)
    assert all(np.array_equal(s.X, t.X) for s, t in zip(a, longer[:3], strict=True))


@pytest.mark.parametrize("correlation", [0.5, 0.95])
def test_toeplitz_correlation(correlation: float) -> None:
    (task,) = conche.gaussian_tasks(1, 40000, 6, correlation=correlation)
    sigma = toeplitz(correlation ** np.arange(6))
    assert np.abs(np.cov(task.X.T) - sigma).max() < 5 / np.sqrt(40000) * 1.5
    x = np.random.default_rng(0).standard_normal(6)
    assert toeplitz_norm(x, correlation) == pytest.approx(x @ sigma @ x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(n_shared=11), "n_shared=11"),
        (dict(noise_var=-1.0), "noise_var=-1.0"),
        (dict(n_samples=0), "n_samples=0 must be a whole number of at least 1"),
        (dict(n_samples=2.5), "n_samples=2.5"),
        (dict(n_samples=[3, 4.0]), "n_samples=3.0"),
        (dict(noise_var=float("nan")), "noise_var=nan"),
        (dict(n_tasks=2.0), "n_tasks=2.0"),
        (dict(correlation=1.5), "correlation=1.5"),
        (dict(n_samples=[3, 3, 3]), "n_samples has 3 values for n_tasks=2"),
        (dict(n_tasks=0), "n_tasks=0"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = dict(n_tasks=2, n_samples=5, n_features=10) | change
    with pytest.raises(ParameterError, match=message):
        conche.gaussian_tasks(**settings)


def test_a_task_must_fit_together() -> None:
    with pytest.raises(DataError, match="task 3: X has 4 rows but y has 5"):
        conche.Task(np.zeros((4, 2)), np.zeros(5), name="3")
    with pytest.raises(DataError, match="3 weights for 2 columns"):
        conche.Task(np.zeros((4, 2)), np.zeros(4), weights=np.zeros(3))
    with pytest.raises(DataError, match="y must have one value per sample"):
        conche.Task(np.zeros((4, 2)), np.array(3.0))
    with pytest.raises(DataError, match="X must be a matrix"):
        conche.Task(np.zeros(4), np.zeros(4))


def test_embedded_digits_are_five_odd_even_tasks() -> None:
    train, test = embedded_digits(n_features=50)
    assert [t.name for t in train] == ["0/1", "2/3", "4/5", "6/7", "8/9"]
    assert sum(t.n_samples for t in train + test) == 1797
    assert all(set(t.y) == {-1.0, 1.0} and t.X.shape[1] == 50 for t in train + test)


def test_cosine_features_are_the_papers() -> None:
    features = conche.CosineFeatures(4000, scale=0.2, seed=1)
    x, y = np.random.default_rng(0).random((2, 784))
    a, b = features.fit_transform(np.array([x, y]))
    # E cos(u) cos(v) over Gaussian directions, by the characteristic function
    expected = sum(np.exp(-0.02 * np.sum((x - s * y) ** 2)) for s in (1, -1)) / 2
    assert abs(np.mean(a * b) - expected) < 4 / np.sqrt(4000)
    assert np.array_equal(
        features.directions_, conche.CosineFeatures(4000, 0.2, 1).fit([x]).directions_
    )


@pytest.mark.parametrize("kind", [conche.CosineFeatures, conche.ReLUFeatures])
def test_features_choose_their_scale_from_the_first_task(kind: Any) -> None:
    """In any unit and from any origin they are the same; and x and -x are told apart."""
    X = np.random.default_rng(0).standard_normal((300, 8))
    plain = kind(200, seed=3).fit(X).transform(X)
    assert 0.3 < np.std(plain) < 3
    for unit in (1e-3, 1e3):
        np.testing.assert_allclose(kind(200, seed=3).fit(unit * X).transform(unit * X), plain)
    features = kind(200, seed=3).fit(X)
    assert np.abs(features.transform(X) - features.transform(-X)).max() > 0.5
    assert np.array_equal(features.transform(X), plain)  # and later tasks change nothing
    assert np.all(np.isfinite(kind(5).fit(np.ones((4, 2))).transform(np.ones((4, 2)))))


def test_relu_features_are_what_they_say() -> None:
    X = np.random.default_rng(0).random((100, 5))
    features = conche.ReLUFeatures(30, scale=0.7, seed=2).fit(X)
    rng = np.random.default_rng(2)
    directions, offsets = rng.normal(0, 0.7, (5, 30)), rng.standard_normal(30)
    by_hand = np.maximum((X - X.mean(axis=0)) @ directions + offsets, 0)
    np.testing.assert_allclose(features.transform(X), by_hand, atol=1e-12)


def test_columns_not_yet_computed_are_selected_and_read() -> None:
    X = np.random.default_rng(0).random((6, 4))
    features = conche.CosineFeatures(10, scale=1.0).fit(X)
    columns, all_of_them = features.columns(X), features.transform(X)
    assert columns.shape == all_of_them.shape == (6, 10) and len(columns) == 6
    chosen = columns.select(np.array([7, 2, 3])).select(slice(1, None))
    assert chosen.shape == (6, 2)
    np.testing.assert_allclose(chosen.read(), all_of_them[:, [2, 3]], rtol=1e-12)
    assert chosen.sendable() is None  # inputs and directions are more than these two columns
    many = conche.CosineFeatures(50, scale=1.0).fit(X).columns(np.ones((60, 4)))
    assert many.sendable() is many
    assert np.array_equal(np.asarray(columns, dtype=np.float32), all_of_them.astype(np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(n_features=0), "n_features=0 must be a whole number of at least 1"),
        (dict(scale=-1.0), "scale=-1.0 must be a number of at least 0"),
        (dict(seed=-1), "seed=-1 must be a whole number of at least 0"),
    ],
)
def test_bad_features_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        conche.CosineFeatures(**change).fit(np.ones((2, 3)))
