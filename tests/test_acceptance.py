"""The default ridge stands what the benchmarks ask of it: the quick part of two of them.

They are `python -m benchmarks.acceptance` and `python -m benchmarks.ridge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from benchmarks import acceptance, ridge
from benchmarks.yardsticks import Case

QUICK: dict[str, tuple[Callable[..., Iterator[Case]], range]] = {
    "traps": (acceptance.traps, range(2)),
    "orders": (acceptance.orders, range(1)),
    "units": (acceptance.units, range(4)),
    "models": (acceptance.models, range(8)),
    "outputs": (acceptance.outputs, range(1)),
    "noiseless": (acceptance.noiseless, range(3)),
    "the difference of two columns": (acceptance.exact_difference, range(10)),
    "no signal": (acceptance.no_signal, range(5)),
    "few rows": (acceptance.few_rows, range(10)),
    "repeats": (acceptance.repeats, range(5)),
}


@pytest.mark.parametrize("n_nodes", [1, 4])
@pytest.mark.parametrize("name", QUICK)
def test_the_default_ridge_is_within_its_limits(name: str, n_nodes: int) -> None:
    group, seeds = QUICK[name]
    found = list(group(n_nodes, seeds))
    assert found
    assert [case for case in found if not case.kept] == []


def test_the_tutorial_has_the_error_of_ridge_cv() -> None:
    [case] = ridge.tutorial_cases(range(5))
    assert case.kept, case


@pytest.mark.parametrize("name", ["diabetes, by age", "wine's alcohol, by cultivar"])
def test_a_stream_has_the_error_of_ridge_cv(name: str) -> None:
    [case] = ridge.stream_cases(None, [name])
    assert case.kept, case


def test_a_case_that_is_not_a_number_is_not_kept() -> None:
    assert Case("", 1.0, 1.0).kept
    assert not Case("", float("nan"), 1.0).kept
