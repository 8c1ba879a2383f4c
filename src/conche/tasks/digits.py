"""Odd against even: handwritten digits as five tasks, 0/1, 2/3, ... (the paper's Section IV-F)."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from .cosine import CosineFeatures
from .task import Task


def embedded_digits(
    n_features: int = 500, scale: float = 0.4, test_share: float = 0.5, seed: int = 0
) -> tuple[list[Task], list[Task]]:
    """scikit-learn's 8 x 8 digits through cosine features: five tasks to train on, five to test.

    Each task tells one even digit (label -1) from the next odd one (label 1).
    """
    pixels, digit = load_digits(return_X_y=True)
    features = CosineFeatures(n_features, scale, seed).fit_transform(pixels / 16)
    rng = np.random.default_rng([seed, 1])
    train: list[Task] = []
    test: list[Task] = []
    for even in range(0, 10, 2):
        rows = rng.permutation(np.flatnonzero((digit == even) | (digit == even + 1)))
        held = int(len(rows) * test_share)
        for tasks, part in ((test, rows[:held]), (train, rows[held:])):
            y = np.where(digit[part] == even, -1.0, 1.0)
            tasks.append(Task(features[part], y, name=f"{even}/{even + 1}"))
    return train, test
