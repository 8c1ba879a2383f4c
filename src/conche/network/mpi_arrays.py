"""Arrays of several nodes, and their states, as buffers that ranks gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from ..common.arrays import Array, here
from ..nodes import NodeState


def packed(arrays: Sequence[Array]) -> tuple[Array, Array]:
    """Kinds and shapes of arrays, and their bytes, one after the other."""
    arrays = [np.ascontiguousarray(array) for array in arrays]
    heads = [(ord(array.dtype.char), array.ndim, *array.shape) for array in arrays]
    raw = b"".join(array.tobytes() for array in arrays)
    return np.array([*chain(*heads)], dtype=np.int64), np.frombuffer(raw, "u1")


def unpacked(head: Array, raw: Array) -> list[Array]:
    """Back from `packed`."""
    left, data, arrays, first = head.tolist(), raw.tobytes(), [], 0
    while left:
        kind, ndim, *rest = left
        shape, left = rest[:ndim], rest[ndim:]
        dtype, size = np.dtype(chr(kind)), math.prod(shape)
        arrays.append(np.frombuffer(data, dtype, size, first).reshape(shape).copy())
        first += size * dtype.itemsize
    return arrays


def bytes_of_state(state: NodeState) -> Array:
    """A node's state."""
    arrays = state.moved(here).to_arrays().items()
    return np.frombuffer(to_bytes({k: np.ascontiguousarray(a) for k, a in arrays}), "u1")


def state_of(raw: Array) -> NodeState:
    """Back from `bytes_of_state`."""
    return NodeState.from_arrays(from_bytes(raw.tobytes()))
