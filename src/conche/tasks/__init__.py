"""What arrives: tasks, one after another, drawn or read from files.

Features and digits are built on scikit-learn and are loaded when they are asked for: importing it
takes longer than all of ours, and nodes and plans can do without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .columns import Columns
from .dense import DenseTasks
from .files import FileColumns, FileStream
from .groups import read_groups
from .synthetic import correlated, gaussian_tasks, toeplitz_norm, with_squared_norm
from .tables import Reading, open_table
from .task import Task

if TYPE_CHECKING:
    from .digits import embedded_digits
    from .features import CosineFeatures, ReLUFeatures
    from .mnist import find_mnist, odd_even_mnist, read_idx
else:
    LATER = {"embedded_digits": "digits", "CosineFeatures": "features", "ReLUFeatures": "features"}
    LATER |= dict.fromkeys(("find_mnist", "odd_even_mnist", "read_idx"), "mnist")

    def __getattr__(name: str) -> Any:
        if name not in LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f".{LATER[name]}", __name__), name)
        return globals()[name]


__all__ = [
    "Columns",
    "CosineFeatures",
    "DenseTasks",
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
    "toeplitz_norm",
    "with_squared_norm",
]
