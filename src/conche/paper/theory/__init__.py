"""The error without training: moments -> forward recursion -> corollaries, stability, limits."""

from .corollaries import (
    contraction,
    corollary_1,
    corollary_3,
    corollary_4,
    endless_error,
    lemma_3,
    lemma_4,
    lin_et_al,
    theorem_2,
)
from .estimation import TaskStatistics, estimate
from .moments import Moments, moments, r_and_gamma
from .offline import best_damping, offline_error
from .recursion import generalization_error, training_error
from .similarity import Similarity
from .stability import spectral_radius, theorem_2_condition
from .tracking import best_discount, tracking_error

__all__ = [
    "Moments",
    "Similarity",
    "TaskStatistics",
    "best_damping",
    "best_discount",
    "contraction",
    "corollary_1",
    "corollary_3",
    "corollary_4",
    "endless_error",
    "estimate",
    "generalization_error",
    "lemma_3",
    "lemma_4",
    "lin_et_al",
    "moments",
    "offline_error",
    "r_and_gamma",
    "spectral_radius",
    "theorem_2",
    "theorem_2_condition",
    "tracking_error",
    "training_error",
]
