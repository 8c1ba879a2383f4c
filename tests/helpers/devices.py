"""Devices that tests run on where there is no GPU: the strictest library, and PyTorch on the
processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import array_api_strict
import numpy as np

from conche.common.arrays import Array
from conche.common.device import Device, Draws, NumpyDraws


class StrictDraws(NumpyDraws):
    """NumPy's numbers, as the strictest of libraries has them."""

    def normal(self, shape: tuple[int, ...]) -> Any:
        return array_api_strict.asarray(super().normal(shape))

    def chisquare(self, freedom: Array) -> Any:
        return array_api_strict.asarray(super().chisquare(freedom))


class Strict(Device):
    """A library that has what the standard says, and nothing else."""

    name = "strict"
    xp: Any = array_api_strict

    def draws(self, seed: int, trials: Sequence[int]) -> Draws:
        return StrictDraws(seed, trials)

    def put(self, array: Array) -> Any:
        return (
            array if not isinstance(array, np.ndarray) else array_api_strict.asarray(array.copy())
        )


def _torch(place: int) -> Device:
    from conche.common.cuda import Torch

    return Torch("cpu")


EXTRA: dict[str, Callable[[int], Device]] = {"strict": lambda place: Strict()}
if find_spec("torch") is not None:
    EXTRA["torch"] = _torch


def gpu_names() -> list[str]:
    """ "cuda" where there is one."""
    if find_spec("torch") is None:
        return []
    return ["cuda"] if import_module("torch").cuda.is_available() else []


def _cupy(place: int) -> Device:
    from conche.common.cuda import Cupy

    return Cupy(place)


if find_spec("cupy") is not None and gpu_names():
    EXTRA["cupy"] = _cupy
