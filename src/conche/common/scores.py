"""How wrong predictions are, written once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax

from .arrays import Array


def mean_squared(predicted: Any, truth: Any) -> float:
    """The mean squared error."""
    return float(np.mean((np.asarray(predicted, dtype=float) - truth) ** 2))


def error_rate(predicted: Any, truth: Any) -> float:
    """The share of labels that are wrong."""
    return float(np.mean(np.asarray(predicted) != truth))


def winners(scores: Array) -> Array:
    """The class that scores highest, by its place; one column decides between two classes."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def chosen(classes: Array, scores: Array) -> Array:
    """The labels of the classes that score highest."""
    return np.asarray(classes[winners(scores) if len(classes) > 1 else np.zeros(len(scores), int)])


def probabilities(scores: Array, n_classes: int) -> Array:
    """Of every class, from the scores of the logistic loss: expit, normalised over the classes."""
    if n_classes == 1:
        return np.ones((len(scores), 1))
    if scores.shape[1] == 1:
        return np.hstack([expit(-scores), expit(scores)])
    return np.asarray(softmax(log_expit(scores), axis=1))
