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
)
from .metrics import ErrorMatrix, error_matrix, generalization_error, training_error
from .offline import offline_solution
from .planner import Plan, plan, plan_from_tasks
from .simulation import Simulation, simulate
from .tasks import CosineFeatures, Task, gaussian_tasks

__version__ = "0.1.0"

__all__ = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheRegressor",
    "CosineFeatures",
    "DivergenceError",
    "ErrorMatrix",
    "ModelFileError",
    "NearSquareWarning",
    "Plan",
    "Simulation",
    "Task",
    "error_matrix",
    "gaussian_tasks",
    "generalization_error",
    "load",
    "offline_solution",
    "plan",
    "plan_from_tasks",
    "save",
    "simulate",
    "theory",
    "training_error",
]
