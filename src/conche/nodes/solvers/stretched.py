"""Columns in other units, without a copy of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...common.arrays import (
    Array,
    Block,
    gram,
    like,
    scale_columns,
    scale_rows,
    times,
)


@dataclass(frozen=True)
class Stretched:
    """A diag(by); None: A itself. Products are stretched, which are small, and not the columns."""

    block: Block
    by: Array | None = None

    @classmethod
    def of(cls, block: Block | Stretched) -> Stretched:
        """Columns of either kind."""
        return block if isinstance(block, Stretched) else cls(block)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the columns."""
        rows, columns = self.block.shape
        return rows, columns

    @property
    def dtype(self) -> Any:
        """Of the columns."""
        return self.block.dtype

    def further(self, by: Array) -> Stretched:
        """Stretched by more."""
        return Stretched(self.block, by if self.by is None else self.by * by)

    def times(self, z: Array) -> Array:
        """A diag(by) z."""
        return times(self.block, z if self.by is None else like(z, self.by)[:, None] * z)

    def turned(self, g: Array) -> Array:
        """diag(by) A^T g."""
        found = times(self.block.T, g)
        return found if self.by is None else like(found, self.by)[:, None] * found

    def gram(self) -> Array:
        """diag(by) A^T A diag(by)."""
        G = gram(self.block, wide=False)
        if self.by is None:
            return G
        by = like(G, self.by)
        G *= by
        G *= by[:, None]
        return G

    def weighed(self, root: Array) -> Stretched:
        """diag(root) A diag(by)."""
        return Stretched(scale_rows(self.block, root), self.by)

    def whole(self) -> Block:
        """The columns in their units, as a copy where they have others."""
        return self.block if self.by is None else scale_columns(self.block, self.by)
