"""What arrives: tasks, one after another."""

from .cosine import CosineFeatures
from .digits import embedded_digits
from .synthetic import correlated_rows, gaussian_tasks, toeplitz_norm
from .task import Task

__all__ = [
    "CosineFeatures",
    "Task",
    "correlated_rows",
    "embedded_digits",
    "gaussian_tasks",
    "toeplitz_norm",
]
