"""A small twin of `python -m benchmarks.tables`, on data that scikit-learn brings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn import datasets

from benchmarks.tables import Errors, Problem, cleaned, compare, design, limits, printed

LOADERS = ("diabetes", "wine", "iris", "breast_cancer")


def problems() -> Iterator[Problem]:
    """The target of diabetes; elsewhere the first and the last column, from the others."""
    for name in LOADERS:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if name == "diabetes":
            yield Problem(name, X, y)
            continue
        for j in (0, X.shape[1] - 1):
            yield Problem(f"{name}, column {j}", np.delete(X, j, axis=1), X[:, j])


@pytest.mark.parametrize("problem", list(problems()), ids=lambda problem: problem.name)
def test_the_default_ridge_is_as_good_as_ridge_cv(problem: Problem) -> None:
    found = compare(problem, n_nodes=2)
    assert found is not None
    assert found.ratio <= 1.05


def test_a_table_becomes_columns() -> None:
    rows = np.arange(50)
    frame = pytest.importorskip("pandas").DataFrame(
        {
            "rownames": rows,
            "size": rows * 2.0,
            "kind": np.where(rows % 2, "a", "b"),
            "text": [f"word {i}" for i in rows],
            "gaps": np.where(rows < 20, np.nan, 1.0),
            "gap": np.where(rows == 7, np.nan, 1.0),
            "target": rows**2,
        }
    )
    X, y = design(cleaned(frame), "target")
    rows = np.delete(rows, 7)
    np.testing.assert_array_equal(y, rows**2)
    odd = rows % 2
    np.testing.assert_array_equal(X, np.column_stack([rows * 2, odd, 1 - odd, np.ones(49)]))


def test_a_target_that_never_varies_is_left_out() -> None:
    assert compare(Problem("constant", np.eye(60), np.ones(60))) is None


def test_the_limits_see_what_is_worse_and_what_is_better() -> None:
    equal = [Errors("equal", 1.0, 1.0, 1.0)] * 97
    better, worse = Errors("better", 0.9, 1.0, 0.9), Errors("worse", 1.21, 1.0, 1.0)
    assert all(case.kept for case in limits([*equal, better, better, worse]))
    assert not any(case.kept for case in limits([*equal, better, worse, worse]))


def test_the_table_has_the_shares() -> None:
    found = [Errors("", 1.1, 1.0, 1.0), Errors("", 0.9, 1.0, 0.9)]
    assert printed(found).splitlines()[2:] == [
        "| our default | 0.0477 | 0.500 / 1.000 | 0.500 / 0.500 | 0.500 / 0.500 | 0.000 |",
        "| RidgeCV | 0.0527 | 0.500 / 1.000 |  |  |  |",
    ]
