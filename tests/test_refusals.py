"""Mistakes that a user makes in the middle of a stream, or with odd types: one clear line each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import ConcheClassifier, ConcheRegressor

rng = np.random.default_rng(0)
X, y = rng.standard_normal((60, 12)), rng.standard_normal(60)
LABELS = (y > 0).astype(int)
ODD: Any = np.array([1.0, 2.0])


def going_on(**change: Any) -> ConcheRegressor:
    model = ConcheRegressor(2).fit(X, y)
    return model.set_params(**change).partial_fit(X, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: going_on(partition=5), "partition=5 must list"),
        (lambda: going_on(partition="x"), "partition='x' must list"),
        (lambda: going_on(n_nodes=ODD), "n_nodes=.* must be a whole number"),
        (lambda: going_on(scaling=ODD), "scaling=.* must be one of"),
        (lambda: going_on(network=ODD), "network=.* must be"),
        (lambda: ConcheRegressor(missing=ODD).fit(X, y), "missing=.* must be one of"),
        (lambda: ConcheRegressor(partition=np.array(3)).fit(X, y), "partition=.* must list"),
        (lambda: ConcheRegressor(solver=conche.Memory(ridge=ODD)).fit(X, y), "ridge=.* must"),
        (lambda: ConcheRegressor(tol=10**400).fit(X, y), "tol=.* must be a number"),
        (lambda: ConcheRegressor(solver=conche.Memory(rank=10**30)).fit(X, y), "rank=.* at most"),
        (lambda: ConcheRegressor().fit(X, np.array(["a"] * 60)), "the target is text"),
        (lambda: ConcheRegressor().fit(X * 1e160, y), "too large"),
        (lambda: ConcheRegressor(2).fit(np.abs(X) * 1e160, y), "too large"),
    ],
)
def test_odd_parameters_and_data_are_named(call: Callable[[], object], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(conche.ConcheError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("classes", [[], 5, "abc", [[1], [2, 3]], [0, None, 1]])
def test_labels_that_are_none_are_refused(classes: Any) -> None:
    with pytest.raises(conche.ParameterError, match="must list labels"):
        ConcheClassifier().partial_fit(X, LABELS, classes=classes)


def test_what_copies_share_cannot_be_changed() -> None:
    model = ConcheRegressor(2, fit_intercept=True).fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0] = 1.0
    model.tasks_[0]["samples"] = -1
    model.history_[0]["bytes"] = -1
    assert model.tasks_[0]["samples"] > 0 and model.history_[0]["bytes"] > 0


def test_gaps_are_filled_as_the_stream_was_begun() -> None:
    model = ConcheRegressor().fit(X, y).set_params(missing="mean")
    with pytest.raises(conche.DataError, match="NaN"):
        model.predict(np.where(X > 2, np.nan, X))


def test_a_good_file_is_not_blamed_for_a_bad_network(tmp_path: Path) -> None:
    conche.save(ConcheRegressor(2).fit(X, y), tmp_path / "m")
    with pytest.raises(conche.ParameterError, match="network='bogus'"):
        conche.load(tmp_path / "m", network="bogus")
    with pytest.raises(conche.ModelFileError, match="cannot go on on a Graph"):
        conche.load(tmp_path / "m", network=conche.Graph("ring"))
    blocks = ConcheRegressor(2, solver=conche.Memory(rank=0), tol=None)
    conche.save(blocks.fit(X, y), tmp_path / "m")
    with pytest.raises(conche.ParameterError, match="no regular graph"):
        conche.load(tmp_path / "m", network=conche.Graph("regular", degree=5))


def test_what_json_cannot_say_is_not_saved(tmp_path: Path) -> None:
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[LABELS]
    with pytest.raises(conche.ParameterError, match="cannot save"):
        conche.save(ConcheClassifier().fit(X, days), tmp_path / "m")
    assert not (tmp_path / "m").exists()
