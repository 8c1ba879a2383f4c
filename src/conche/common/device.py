"""Where arrays live, and what the array API lacks: random numbers, and the way there and back.

NumPy is the default. On a GPU arrays are PyTorch's, or CuPy's where there is no PyTorch; what works
on them is written against the array API (`array_api_compat`), once for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import numpy as numpy_api

from .arrays import Array
from .checks import one_of

AnyArray = Any  # of whichever library the device has
DEVICES = ("cpu", "cuda")
FIRST_BATCH = 2e6  # entries that trials computed together hold, where memory is not the limit


class Draws(ABC):
    """Random numbers for a batch of trials, each from a generator of its own: the same numbers,
    however trials are shared out. Axis 0 is the trial."""

    @abstractmethod
    def __len__(self) -> int:
        """How many trials."""

    @abstractmethod
    def normal(self, shape: tuple[int, ...]) -> AnyArray:
        """trials x shape, standard normal."""

    @abstractmethod
    def chisquare(self, freedom: Array) -> AnyArray:
        """trials x len(freedom), chi-squared with so many degrees of freedom."""


class Device(ABC):
    """One array library on one device."""

    name: str
    xp: Any  # its namespace, as the array API has it

    @abstractmethod
    def draws(self, seed: int, trials: Sequence[int]) -> Draws:
        """Generators for these trials."""

    @abstractmethod
    def put(self, array: Array) -> AnyArray:
        """An array of ours, there."""

    @abstractmethod
    def fetch(self, array: AnyArray) -> Array:
        """An array from there, here."""

    def room(self) -> float:
        """Entries that a batch of trials may hold."""
        return FIRST_BATCH


class NumpyDraws(Draws):
    """NumPy's own generators."""

    def __init__(self, seed: int, trials: Sequence[int]):
        self.rngs = [np.random.default_rng([seed, trial]) for trial in trials]

    def __len__(self) -> int:
        return len(self.rngs)

    def only(self, i: int) -> NumpyDraws:
        """One of the trials; it goes on with the same generator."""
        alone = NumpyDraws(0, [])
        alone.rngs = [self.rngs[i]]
        return alone

    def normal(self, shape: tuple[int, ...]) -> Array:
        return np.stack([rng.standard_normal(shape) for rng in self.rngs])

    def chisquare(self, freedom: Array) -> Array:
        return np.stack([rng.chisquare(freedom) for rng in self.rngs])


class Cpu(Device):
    """NumPy."""

    name = "cpu"
    xp: Any = numpy_api

    def draws(self, seed: int, trials: Sequence[int]) -> NumpyDraws:
        return NumpyDraws(seed, trials)

    def put(self, array: Array) -> Array:
        return array

    def fetch(self, array: AnyArray) -> Array:
        return np.asarray(array)


def find_device(name: str | None) -> Device:
    """The device of that name; None: this machine's processor."""
    if name is None or one_of("device", name, DEVICES) == "cpu":
        return Cpu()
    from . import cuda  # late: its libraries are large

    return cuda.find()
