"""Arrays and a description in one safetensors file, whose every bit is checked when it is read.

The description is JSON, in an array of bytes (a file's header is of limited size). The header has
the format's number and a digest of every array.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from ..errors import ModelFileError
from .arrays import Array
from .words import one_line

DESCRIPTION = "description"


def digest(array: Array) -> str:
    """Of the array's type, shape and bytes."""
    seal = blake2b(f"{array.dtype.str} {array.shape} ".encode(), digest_size=16)
    seal.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return seal.hexdigest()


def seal(format: int, described: str, arrays: Mapping[str, Array]) -> bytes:
    """The file's bytes; ``described`` is JSON."""
    whole = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    whole[DESCRIPTION] = np.frombuffer(described.encode(), np.uint8)
    digests = {key: digest(whole[key]) for key in sorted(whole)}
    return to_bytes(whole, {"conche": json.dumps({"format": format, "digests": digests})})


def unseal(path: str | os.PathLike[str], format: int) -> tuple[Any, dict[str, Array]]:
    """The description and the arrays, or a `ModelFileError` where they are not what was written."""
    header, arrays = _read(Path(path))
    if "conche" not in header:
        raise ModelFileError(f"{path}: a safetensors file, but not a Conche model")
    try:
        known = json.loads(header["conche"])
        written, digests = known["format"], known.get("digests", {})
        if not isinstance(written, int) or not isinstance(digests, dict):
            raise TypeError("not a header of ours")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise ModelFileError(f"{path}: its header is damaged") from None
    if written > format:
        raise ModelFileError(
            f"{path}: written by a newer Conche (format {written}, this one reads {format}): "
            f"upgrade conche"
        )
    if written < format:
        raise ModelFileError(
            f"{path}: written by a Conche from before the first release (format {written}): "
            f"train it again"
        )
    for key in sorted({*digests, *arrays}):
        if key not in arrays or digests.get(key) != digest(arrays[key]):
            raise ModelFileError(f"{path}: incomplete or damaged model ({key} has changed)")
    if DESCRIPTION not in arrays:
        raise ModelFileError(f"{path}: incomplete or damaged model (no description)")
    try:
        return json.loads(arrays.pop(DESCRIPTION).tobytes()), arrays
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path}: its description is damaged") from None


def _read(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            return header, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path}: not a whole model file ({one_line(error)})") from None
