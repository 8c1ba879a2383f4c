"""Odd against even: handwritten digits as five tasks, 0/1, 2/3, ... (the paper's Section IV-F)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.arrays import Array
from ..common.checks import real
from .features import CosineFeatures
from .task import Task


def embedded_digits(
    n_features: int = 500,
    scale: float = 0.4,
    test_share: float = 0.5,
    seed: int = 0,
    lazy: bool = False,
) -> tuple[list[Task], list[Task]]:
    """scikit-learn's 8 x 8 digits through cosine features: five tasks to train on, five to test.

    Each task tells one even digit (label -1) from the next odd one (label 1).

    Parameters
    ----------
    n_features, scale, seed : of the `CosineFeatures`; the seed also splits train from test.
    test_share : the part of every task's samples that is held out.
    lazy : leave the features to be computed where they are needed (`conche.tasks.Columns`).

    Examples
    --------
    >>> train, test = embedded_digits(n_features=20)
    >>> [task.name for task in train]
    ['0/1', '2/3', '4/5', '6/7', '8/9']
    """
    from sklearn.datasets import load_digits  # late: it takes longer to import than all of ours

    real("test_share", test_share, 0, 1)
    pixels, digits = load_digits(return_X_y=True)
    features = CosineFeatures(n_features, scale, seed).fit(pixels / 16)
    ready = features.columns if lazy else features.transform
    rng = np.random.default_rng([seed, 1])
    train: list[Task] = []
    test: list[Task] = []
    for even in range(0, 10, 2):
        rows = rng.permutation(np.flatnonzero((digits == even) | (digits == even + 1)))
        held = int(len(rows) * test_share)
        for tasks, part in ((test, rows[:held]), (train, rows[held:])):
            tasks.append(odd_even_task(ready(pixels[part] / 16), digits[part], even))
    return train, test


def odd_even_task(X: Any, digits: Array, even: int) -> Task:
    """The task of one pair of digits: label -1 for the even one, 1 for the odd one."""
    return Task(X, np.where(digits == even, -1.0, 1.0), name=f"{even}/{even + 1}")
