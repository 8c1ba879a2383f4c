"""Which outputs of a model to go on with, or to show."""

from __future__ import annotations

from typing import NamedTuple

from .arrays import Array, columns_of, is_here, like


class Outputs(NamedTuple):
    """New output i is signs[i] times the old one at places[i]."""

    places: tuple[int, ...]
    signs: tuple[int, ...]

    @classmethod
    def same(cls, count: int) -> Outputs:
        """All of them, as they are."""
        return cls(tuple(range(count)), (1,) * count)

    def of(self, array: Array) -> Array:
        """Of something linear in the targets; outputs are its last axis."""
        return self.among(array) * like(array, self.signs)

    def among(self, array: Array) -> Array:
        """Of something whose sign does not matter."""
        if is_here(array):
            return array[..., list(self.places)]
        return columns_of(array, self.places)

    def in_blocks(self, blocks: list[int], width: int) -> Outputs:
        """The same of several blocks of so many outputs."""
        places = tuple(width * block + place for block in blocks for place in self.places)
        return Outputs(places, self.signs * len(blocks))
