"""All that is public, and nothing else: what ``conche`` answers with."""

from __future__ import annotations

from . import tasks, theory
from .errors import (
    ConcheError,
    CorrelationWarning,
    DataError,
    DeviceError,
    DeviceWarning,
    DivergenceError,
    MissingExtraError,
    ModelFileError,
    NearSquareWarning,
    NetworkError,
    NodeError,
    ParameterError,
    ReplayWarning,
    SpecError,
    StreamError,
)
from .estimators import (
    CoCoAClassifier,
    CoCoARegressor,
    ConcheClassifier,
    ConcheRegressor,
    StreamPipeline,
    elastic_net_path,
    to_sklearn,
)
from .metrics import ErrorMatrix, error_matrix, generalization_error, training_error
from .model_file import load, save
from .network import Graph
from .node_stream import NodeStream
from .nodes.solvers import Damped, ElasticNet, Exact, Memory
from .offline import offline_solution
from .paper.simulation import Simulation, simulate
from .planner import Plan, plan, plan_from_tasks
from .tasks import CosineFeatures, FileStream, ReLUFeatures, Task, gaussian_tasks, odd_even_mnist
from .training import train

__all__ = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheError",
    "ConcheRegressor",
    "CorrelationWarning",
    "CosineFeatures",
    "Damped",
    "DataError",
    "DeviceError",
    "DeviceWarning",
    "DivergenceError",
    "ElasticNet",
    "ErrorMatrix",
    "Exact",
    "FileStream",
    "Graph",
    "Memory",
    "MissingExtraError",
    "ModelFileError",
    "NearSquareWarning",
    "NetworkError",
    "NodeError",
    "NodeStream",
    "ParameterError",
    "Plan",
    "ReLUFeatures",
    "ReplayWarning",
    "Simulation",
    "SpecError",
    "StreamError",
    "StreamPipeline",
    "Task",
    "elastic_net_path",
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
    "tasks",
    "theory",
    "to_sklearn",
    "train",
    "training_error",
]
