"""What arrives: tasks, one after another."""

from .cosine import CosineFeatures
from .digits import embedded_digits
from .synthetic import correlated, gaussian_tasks, toeplitz_norm, with_squared_norm
from .tables import StreamError, read_stream
from .task import Task

__all__ = [
    "CosineFeatures",
    "StreamError",
    "Task",
    "correlated",
    "embedded_digits",
    "gaussian_tasks",
    "read_stream",
    "toeplitz_norm",
    "with_squared_norm",
]
