"""Marks of tasks on disk: check sums, to tell whether a file is still the one that was learnt."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..common.arrays import Array, Block


@dataclass(frozen=True)
class Mark:
    """What a task is known by again."""

    rows: int
    target: int
    features: int  # the sum of all nodes' own
    files: tuple[int, ...] = ()  # check sums of the nodes' files, where each has its own

    def changed(self, now: Mark) -> str | None:
        """What is not as it was, in a word; None where nothing has changed."""
        if now.rows != self.rows:
            return f"{now.rows} rows, not {self.rows}"
        if now.target != self.target:
            return "another target"
        return None if now.features == self.features else "other features"


def target_mark(y: Array, weights: Array | None = None) -> int:
    """Of a target, numbers or labels in text, and of its samples' weights."""
    if y.dtype.kind in "biuf":
        mark = zlib.crc32(np.ascontiguousarray(y, dtype=np.float64).data)
    else:
        mark = zlib.crc32("\0".join(map(str, y.tolist())).encode())
    return mark if weights is None else zlib.crc32(np.ascontiguousarray(weights).data, mark)


def block_mark(node: int, block: Block) -> int:
    """Of one node's columns, as they were read. 32 bits, so that sums over nodes are exact."""
    if sparse.issparse(block):
        columns = block.tocsc()
        parts = [columns.indptr, columns.indices, columns.data]
    else:
        parts = [np.ascontiguousarray(block.T)]
    mark = zlib.crc32(f"{node} {block.shape}".encode())
    for part in parts:
        mark = zlib.crc32(part.data, mark)
    return mark
