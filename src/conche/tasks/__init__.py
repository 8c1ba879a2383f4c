"""What arrives: tasks, one after another."""

from .cosine import CosineFeatures
from .digits import embedded_digits
from .synthetic import correlated_rows, gaussian_tasks, toeplitz_norm
from .tables import StreamError, read_stream
from .task import Task

__all__ = [
    "CosineFeatures",
    "StreamError",
    "Task",
    "correlated_rows",
    "embedded_digits",
    "gaussian_tasks",
    "read_stream",
    "toeplitz_norm",
]
