"""GPUs: PyTorch's arrays, or CuPy's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..errors import DeviceError, MissingExtraError
from .arrays import Array
from .device import Device, Draws

SHARE = 1 / 24  # of all memory for the matrices that a batch of trials begins with


SHORT = (
    "the GPU's memory is not enough for this task: fewer samples a task, a smaller rank, or more "
    "GPUs (docs/gpu.md)"
)


def find(place: int = 0) -> Device:
    """The GPU, through the library that is there."""
    if find_spec("torch") is not None:
        return Torch("cuda", place)
    if find_spec("cupy") is not None:
        return Cupy(place)
    raise MissingExtraError("a GPU needs PyTorch or CuPy: pip install 'conche[gpu]'")


def mixed(seed: int, trial: int) -> int:
    """One seed of 63 bits for every trial of every seed."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1, np.uint64)[0] >> 1)


class TorchDraws(Draws):
    """One of PyTorch's generators a trial, on the device."""

    def __init__(self, device: Any, seed: int, trials: Sequence[int]):
        torch = import_module("torch")
        self.torch, self.device = torch, device
        self.generators = [
            torch.Generator(device=device).manual_seed(mixed(seed, trial)) for trial in trials
        ]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, shape: tuple[int, ...]) -> Array:
        torch = self.torch
        out = torch.empty((len(self), *shape), dtype=torch.float64, device=self.device)
        for place, generator in zip(out, self.generators, strict=True):
            place.normal_(generator=generator)
        return out

    def chisquare(self, freedom: Array) -> Array:
        torch = self.torch
        half = torch.as_tensor(np.asarray(freedom) / 2, dtype=torch.float64, device=self.device)
        drawn = [torch._standard_gamma(half, generator=each) for each in self.generators]
        return 2 * torch.stack(drawn)


class Torch(Device):
    """PyTorch, on a GPU (or on the processor, where tests have no GPU)."""

    def __init__(self, device: str, place: int = 0):
        torch, xp = import_module("torch"), import_module("array_api_compat.torch")
        if device == "cuda" and not torch.cuda.is_available():
            raise DeviceError(
                "PyTorch finds no GPU: is there one, with a driver, and is PyTorch built for it "
                "(torch.version.cuda)?"
            )
        self.name, self.xp, self.torch = device, xp, torch
        self.device = torch.device(device)
        if device == "cuda":
            self.device = torch.device(device, place % torch.cuda.device_count())

    def draws(self, seed: int, trials: Sequence[int]) -> TorchDraws:
        return TorchDraws(self.device, seed, trials)

    def put(self, array: Array) -> Array:
        if isinstance(array, np.ndarray):
            if any(step < 0 for step in array.strides) or not array.flags.writeable:
                array = array.copy()  # PyTorch has no such arrays
            return self.torch.as_tensor(array, device=self.device)
        if isinstance(array, self.torch.Tensor):
            return array.detach().to(self.device)
        return self.torch.from_dlpack(array).to(self.device)

    def room(self) -> float:
        if self.name != "cuda":
            return super().room()
        return SHARE * self.torch.cuda.mem_get_info()[1] / 8

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except self.torch.OutOfMemoryError:
            self.torch.cuda.empty_cache()
            raise DeviceError(SHORT) from None


class CupyDraws(Draws):
    """One of CuPy's generators a trial."""

    def __init__(self, cupy: Any, seed: int, trials: Sequence[int]):
        self.cupy = cupy
        bits = cupy.random.Philox4x3210
        self.generators = [cupy.random.Generator(bits(mixed(seed, trial))) for trial in trials]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, shape: tuple[int, ...]) -> Array:
        return self.cupy.stack([each.standard_normal(shape) for each in self.generators])

    def chisquare(self, freedom: Array) -> Array:
        freedom = self.cupy.asarray(freedom, dtype=float)
        return self.cupy.stack([each.chisquare(freedom) for each in self.generators])


class Cupy(Device):
    """CuPy, on a GPU."""

    name = "cuda"

    def __init__(self, place: int = 0) -> None:
        cupy, xp = import_module("cupy"), import_module("array_api_compat.cupy")
        try:
            found = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(f"CuPy finds no GPU: {error}") from None
        if not found:
            raise DeviceError("CuPy finds no GPU")
        self.xp, self.cupy = xp, cupy
        cupy.cuda.Device(place % found).use()

    def draws(self, seed: int, trials: Sequence[int]) -> CupyDraws:
        return CupyDraws(self.cupy, seed, trials)

    def put(self, array: Array) -> Array:
        if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
            return self.cupy.from_dlpack(array)
        return self.cupy.asarray(array)

    def room(self) -> float:
        return SHARE * float(self.cupy.cuda.runtime.memGetInfo()[1]) / 8

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except self.cupy.cuda.memory.OutOfMemoryError:
            self.cupy.get_default_memory_pool().free_all_blocks()
            raise DeviceError(SHORT) from None
