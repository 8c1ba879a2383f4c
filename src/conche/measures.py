"""What ``evaluate --metric`` measures: a task's predictions against the truth, as one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .common.arrays import Array
from .common.scores import chosen, error_rate, mean_squared, probabilities
from .errors import ParameterError


class Guess(NamedTuple):
    """Of one task: what the model scores, and what is true."""

    scores: Array  # n_samples x n_outputs
    y: Array
    classes: Array | None  # None: numbers are predicted

    @property
    def labels(self) -> Array:
        """The labels that score highest."""
        assert self.classes is not None
        return chosen(self.classes, self.scores)


class Metric(NamedTuple):
    """``title`` is how tables call it; ``better`` is 1 where more is better, else -1."""

    title: str
    of_labels: bool
    better: int
    of: Callable[[Guess], float]
    probabilistic: bool = False  # whether it needs probabilities

    @property
    def rate(self) -> bool:
        """Whether it is a share of something, and read in percent."""
        return self.title in ("error rate", "accuracy", "balanced accuracy", "macro F1")


def metric_named(name: str | None, of_labels: bool, probabilistic: bool) -> Metric:
    """The metric of that name, for a model of that kind; None: its error."""
    if name is None:
        name = "error" if of_labels else "mse"
    known = [key for key, metric in METRICS.items() if metric.of_labels == of_labels]
    if name not in known:
        kind = "labels" if of_labels else "numbers"
        raise ParameterError(f"metric={name!r}: of {kind} there are {', '.join(known)}")
    if METRICS[name].probabilistic and not probabilistic:
        raise ParameterError(f"metric={name!r} needs probabilities, which loss='logistic' has")
    return METRICS[name]


def _sklearn(name: str, guess: Guess, **options: Any) -> float:
    from sklearn import metrics  # late: it takes longer to import than all of ours

    return float(getattr(metrics, name)(guess.y, guess.labels, **options))


def _log_loss(guess: Guess) -> float:
    assert guess.classes is not None
    places: Array = np.searchsorted(guess.classes, guess.y)
    true = probabilities(guess.scores, len(guess.classes))[np.arange(len(places)), places]
    return float(-np.log(np.maximum(true, 1e-15)).mean())


def _auc(guess: Guess) -> float:
    """The mean over the task's classes of how often a sample of the class scores higher for it
    than one that is not; NaN where a task has one class alone."""
    from scipy.stats import rankdata

    assert guess.classes is not None
    each = []
    for place in np.unique(np.searchsorted(guess.classes, guess.y)):
        own = guess.y == guess.classes[place]
        n, m = int(own.sum()), int((~own).sum())
        if m == 0:
            continue
        scores = guess.scores[:, place] if guess.scores.shape[1] > 1 else guess.scores[:, 0]
        scores = -scores if guess.scores.shape[1] == 1 and place == 0 else scores
        each.append((rankdata(scores)[own].sum() - n * (n + 1) / 2) / (n * m))
    return float(np.mean(each)) if each else float("nan")


def _r2(guess: Guess) -> float:
    """1 - mean squared error over variance; NaN where the target does not vary."""
    variance = float(np.var(guess.y))
    return 1 - mean_squared(guess.scores[:, 0], guess.y) / variance if variance else float("nan")


METRICS = {
    "error": Metric("error rate", True, -1, lambda g: error_rate(g.labels, g.y)),
    "accuracy": Metric("accuracy", True, 1, lambda g: 1 - error_rate(g.labels, g.y)),
    "balanced-accuracy": Metric(
        "balanced accuracy",
        True,
        1,
        lambda g: float(np.mean([np.mean(g.labels[g.y == c] == c) for c in np.unique(g.y)])),
    ),
    "macro-f1": Metric(
        "macro F1", True, 1, lambda g: _sklearn("f1_score", g, average="macro", zero_division=0)
    ),
    "log-loss": Metric("log loss", True, -1, _log_loss, True),
    "auc": Metric("area under the ROC curve", True, 1, _auc),
    "mse": Metric("mean squared error", False, -1, lambda g: mean_squared(g.scores[:, 0], g.y)),
    "mae": Metric(
        "mean absolute error", False, -1, lambda g: float(np.mean(np.abs(g.scores[:, 0] - g.y)))
    ),
    "r2": Metric("R2", False, 1, _r2),
}
