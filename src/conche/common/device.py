"""Where arrays live, and what the array API lacks: random numbers, and the way there and back.

NumPy is the default. On a GPU arrays are PyTorch's, or CuPy's where there is no PyTorch; what works
on them is written against the array API (`array_api_compat`), once for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import numpy as numpy_api
from scipy import sparse

from .arrays import Array, here
from .checks import one_of

FIRST_BATCH = 2e6  # entries that trials computed together hold, where memory is not the limit


class Draws(ABC):
    """Random numbers for a batch of trials, each from a generator of its own: the same numbers,
    however trials are shared out. Axis 0 is the trial."""

    @abstractmethod
    def __len__(self) -> int:
        """How many trials."""

    @abstractmethod
    def normal(self, shape: tuple[int, ...]) -> Array:
        """trials x shape, standard normal."""

    @abstractmethod
    def chisquare(self, freedom: Array) -> Array:
        """trials x len(freedom), chi-squared with so many degrees of freedom."""


class Device(ABC):
    """One array library on one device."""

    name: str
    xp: Any  # its namespace, as the array API has it

    @abstractmethod
    def draws(self, seed: int, trials: Sequence[int]) -> Draws:
        """Generators for these trials."""

    @abstractmethod
    def put(self, array: Array) -> Array:
        """An array of ours, or of another library, there."""

    def fetch(self, array: Array) -> Array:
        """An array from there, here."""
        return here(array)

    def room(self) -> float:
        """Entries that a batch of trials may hold."""
        return FIRST_BATCH

    def guarded(self) -> AbstractContextManager[Any]:
        """What the library says when memory is short becomes one line of ours."""
        return nullcontext()

    def put_all(self, message: Any) -> Any:
        """A message with all of its arrays there."""
        return carried(lambda x: self.put(x) if isinstance(x, np.ndarray) else x, message)

    def fetch_all(self, message: Any) -> Any:
        """A message with all of its arrays here."""
        return carried(lambda x: x if isinstance(x, np.ndarray) else self.fetch(x), message)


def carried(move: Callable[[Array], Array], message: Any) -> Any:
    """The same message with every array in it moved: it may be a tuple, a list, a dict, or one of
    our records of them."""
    if hasattr(message, "shape") and hasattr(message, "dtype"):
        return (
            message
            if sparse.issparse(message) or isinstance(message, np.generic)
            else move(message)
        )
    if isinstance(message, tuple | list):
        parts = [carried(move, part) for part in message]
        named = hasattr(message, "_fields")
        return type(message)(*parts) if named else type(message)(parts)
    if isinstance(message, dict):
        return {key: carried(move, part) for key, part in message.items()}
    if is_dataclass(message) and not isinstance(message, type):
        own = {f.name: getattr(message, f.name) for f in fields(message) if f.init}
        return replace(message, **{name: carried(move, part) for name, part in own.items()})
    return message


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


def _cuda(place: int) -> Device:
    from . import cuda  # late: its libraries are large

    return cuda.find(place)


DEVICES: dict[str, Callable[[int], Device]] = {"cpu": lambda place: Cpu(), "cuda": _cuda}


def find_device(name: str | None, place: int = 0) -> Device:
    """The device of that name; None: this machine's processor. Of several GPUs, the one at
    ``place``, counted round and round."""
    return DEVICES[one_of("device", "cpu" if name is None else name, DEVICES)](place)
