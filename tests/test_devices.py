"""The simulation in other array libraries: the strict one, and PyTorch where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import conche
from conche.common.arrays import Array
from conche.common.device import Cpu, find_device
from conche.errors import MissingExtraError, ParameterError
from conche.paper.simulation.model import Model, make_model
from conche.paper.simulation.rows import by_rows, learning_curves, offline_by_rows
from conche.paper.simulation.span import by_span
from conche.paper.theory import Similarity, generalization_error

from .helpers.commands import run_here
from .helpers.devices import Strict


def models(n: int, correlation: float = 0.0, weights: Array | None = None) -> list[Model]:
    """Blocks of one shape: even, uneven, one; with and without rounds."""
    cases = (([24], 12, 1), ([6] * 4, 20, 3), ([4, 4, 16], 0, 2), ([12, 12], 12, 1))
    return [
        make_model(
            3,
            n,
            partition,
            n_shared=n_shared,
            noise_var=0.1,
            n_rounds=rounds,
            correlation=correlation,
            weights=weights,
        )
        for partition, n_shared, rounds in cases
    ]


@pytest.mark.parametrize("correlation", [0.0, 0.6])
@pytest.mark.parametrize("n", [40, 24, 16, 9])
def test_rows_in_the_strict_library(n: int, correlation: float) -> None:
    here, there = Cpu(), Strict()
    some = models(n, correlation)
    for a, b in zip(*(by_rows(some, d.draws(3, range(4)), d) for d in (here, there)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    a, b = (offline_by_rows(some, [1, 3], d.draws(3, range(4)), d) for d in (here, there))
    np.testing.assert_allclose(a, b, rtol=1e-8)
    for a, b in zip(
        *(np.array(learning_curves(some[1:2], 2, d.draws(3, [5]), d)) for d in (here, there)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("given", [False, True])
def test_wide_blocks_in_the_strict_library(given: bool) -> None:
    W = np.random.default_rng(0).standard_normal((3, 600)) if given else None
    model = make_model(3, 12, [200, 400], n_shared=250, noise_var=0.1, weights=W)
    a, b = (by_span(model, d.draws(1, range(3)), d) for d in (Cpu(), Strict()))
    np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch_draws_the_same_distribution() -> None:
    """On the processor: against theory; a trial's numbers do not depend on its batch."""
    from conche.common.cuda import Torch

    device = Torch("cpu")
    model = make_model(3, 40, [6] * 4, n_shared=12, noise_var=0.1)
    (D,) = by_rows([model], device.draws(0, range(400)), device)
    (one,) = by_rows([model], device.draws(0, [7]), device)
    np.testing.assert_allclose(D[7], one[0], rtol=1e-9)
    errors = model.error(D)
    expected = generalization_error(Similarity.shared(3, [6] * 4, 12), 40, 0.1)
    stderr = errors.std(axis=0, ddof=1) / 20
    assert np.all(np.abs(errors.mean(axis=0) - expected) < 4 * stderr)


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="device='tpu' must be one of"):
        conche.simulate(2, 10, [4], trials=2, device="tpu")
    assert find_device(None).name == find_device("cpu").name == "cpu"
    monkeypatch.setattr("conche.common.cuda.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="PyTorch or CuPy"):
        conche.simulate(2, 10, [4], trials=2, device="cuda")
    done = run_here("reproduce", "fig2", "--device", "cuda", "--out", "/nowhere")
    assert done.returncode == 2 and "conche[gpu]" in done.stderr
