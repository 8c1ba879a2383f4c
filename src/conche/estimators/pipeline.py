"""Transformers before an estimator, task by task."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import NotFittedError, check_is_fitted

from ..tasks.masks import unmasked
from .base import LinearModel


class StreamPipeline(Pipeline):  # type: ignore[misc]  # scikit-learn ships no types
    """scikit-learn's Pipeline with ``partial_fit``: one call, one task.

    A transformer with ``partial_fit`` goes on learning, any other is fitted by the first task and
    then left alone. One that can compute its columns on demand (``columns``, as `CosineFeatures`)
    leaves that to the nodes: each computes its own share. A task that fails changes nothing.

    Parameters
    ----------
    steps : pairs of a name and a transformer, and at the end one with an estimator.
    transform_input, memory, verbose : as in scikit-learn's Pipeline.

    Examples
    --------
    >>> import conche
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> head = conche.ConcheClassifier(n_nodes=2)
    >>> model = conche.StreamPipeline([("features", conche.CosineFeatures(300)), ("head", head)])
    >>> for task in range(5):  # two new digits a task
    ...     rows = y // 2 == task
    ...     _ = model.partial_fit(X[rows] / 16, y[rows])
    >>> bool(model.score(X / 16, y) > 0.97)
    True
    """

    def partial_fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Learn one more task; ``options`` go to the last step's ``partial_fit``."""
        X = unmasked(X, "X", gaps=True)  # a step may fill what is missing, but knows of no mask
        steps: list[tuple[str, Any]] = []
        for name, step in self.steps[:-1]:
            if step is None or step == "passthrough":
                steps.append((name, step))
                continue
            ready = copy.deepcopy(step)
            if hasattr(ready, "partial_fit"):
                ready.partial_fit(X, y)
            elif not _is_fitted(ready):
                ready.fit(X, y)
            last = len(steps) == len(self.steps) - 2
            lazy = last and hasattr(ready, "columns") and isinstance(self.steps[-1][1], LinearModel)
            X = ready.columns(X) if lazy else ready.transform(X)
            steps.append((name, ready))
        self.steps[-1][1].partial_fit(X, y, **options)
        self.steps[:-1] = steps
        return self


def _is_fitted(step: Any) -> bool:
    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True
