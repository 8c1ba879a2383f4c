"""What arrives: tasks, one after another, drawn or read from files."""

from .columns import Columns
from .digits import embedded_digits
from .features import CosineFeatures, ReLUFeatures
from .files import FileColumns, FileStream, read_stream
from .groups import read_groups
from .mnist import find_mnist, odd_even_mnist, read_idx
from .synthetic import correlated, gaussian_tasks, toeplitz_norm, with_squared_norm
from .tables import Reading, open_table
from .task import Task

__all__ = [
    "Columns",
    "CosineFeatures",
    "FileColumns",
    "FileStream",
    "ReLUFeatures",
    "Reading",
    "Task",
    "correlated",
    "embedded_digits",
    "find_mnist",
    "gaussian_tasks",
    "odd_even_mnist",
    "open_table",
    "read_groups",
    "read_idx",
    "read_stream",
    "toeplitz_norm",
    "with_squared_norm",
]
