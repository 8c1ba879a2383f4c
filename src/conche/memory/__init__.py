"""Lossless memory: the past as sums, and what follows from them. It knows no nodes."""

from .certificate import gap, noise
from .evidence import Solution, Wish, correlations, solve
from .past import DISCOUNTS, Past, errors, predictions
from .sums import Rows, Sums

__all__ = [
    "DISCOUNTS",
    "Past",
    "Rows",
    "Solution",
    "Sums",
    "Wish",
    "correlations",
    "errors",
    "gap",
    "noise",
    "predictions",
    "solve",
]
