"""Conche: distributed continual learning with CoCoA."""

from . import theory
from .checkpoint import ModelFileError, load, save
from .cocoa import DivergenceError
from .estimators import (
    CoCoAClassifier,
    CoCoARegressor,
    ConcheClassifier,
    ConcheRegressor,
    NearSquareWarning,
    StreamPipeline,
)
from .metrics import ErrorMatrix, error_matrix, generalization_error, training_error
from .network import Graph
from .offline import offline_solution
from .planner import Plan, plan, plan_from_tasks
from .simulation import Simulation, simulate
from .tasks import CosineFeatures, FileStream, Task, gaussian_tasks, odd_even_mnist

__version__ = "0.1.0"

__all__ = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheRegressor",
    "CosineFeatures",
    "DivergenceError",
    "ErrorMatrix",
    "FileStream",
    "Graph",
    "ModelFileError",
    "NearSquareWarning",
    "Plan",
    "Simulation",
    "StreamPipeline",
    "Task",
    "error_matrix",
    "gaussian_tasks",
    "generalization_error",
    "load",
    "odd_even_mnist",
    "offline_solution",
    "plan",
    "plan_from_tasks",
    "save",
    "simulate",
    "theory",
    "training_error",
]
