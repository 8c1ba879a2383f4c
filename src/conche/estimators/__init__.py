"""scikit-learn's face of it: one ``partial_fit`` is one task."""

from .classifier import CoCoAClassifier, ConcheClassifier
from .path import elastic_net_path
from .pipeline import StreamPipeline
from .plain import to_sklearn
from .regressor import CoCoARegressor, ConcheRegressor

__all__ = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheRegressor",
    "StreamPipeline",
    "elastic_net_path",
    "to_sklearn",
]
