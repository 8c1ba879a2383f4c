"""scikit-learn's face of it: one ``partial_fit`` is one task."""

from .classifier import CoCoAClassifier, ConcheClassifier
from .pipeline import StreamPipeline
from .plain import to_sklearn
from .regressor import CoCoARegressor, ConcheRegressor

__all__ = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheRegressor",
    "StreamPipeline",
    "to_sklearn",
]
