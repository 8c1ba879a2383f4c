"""What arrives: tasks, one after another."""

from .columns import Columns
from .cosine import CosineFeatures
from .digits import embedded_digits
from .files import FileStream, read_groups, read_stream
from .mnist import IdxError, find_mnist, odd_even_mnist, read_idx
from .synthetic import correlated, gaussian_tasks, toeplitz_norm, with_squared_norm
from .tables import StreamError
from .task import Task

__all__ = [
    "Columns",
    "CosineFeatures",
    "FileStream",
    "IdxError",
    "StreamError",
    "Task",
    "correlated",
    "embedded_digits",
    "find_mnist",
    "gaussian_tasks",
    "odd_even_mnist",
    "read_groups",
    "read_idx",
    "read_stream",
    "toeplitz_norm",
    "with_squared_norm",
]
