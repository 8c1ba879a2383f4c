"""
Two new digits a task
=====================

Class-incremental learning: the first task has zeros and ones, the next twos and threes, and so on.
In the end all ten have to be told apart, though no sample was kept and no two tasks had a class in
common.
"""

# %%
# scikit-learn's small digits, through random cosine features that every node computes for itself.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import conche

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order] / 16, y[order]
pairs = [(2 * t, 2 * t + 1) for t in range(5)]


def tasks(rows: slice) -> list[conche.Task]:
    """A task for each pair of digits."""
    of_pair = [np.isin(y[rows], pair) for pair in pairs]
    return [
        conche.Task(X[rows][own], y[rows][own], name=f"{a}/{b}")
        for own, (a, b) in zip(of_pair, pairs, strict=True)
    ]


train, test = tasks(slice(0, 1200)), tasks(slice(1200, None))
model = conche.StreamPipeline(
    [("features", conche.CosineFeatures(500)), ("head", conche.ConcheClassifier(n_nodes=4))]
)

# %%
# ``error_matrix`` trains a copy task by task, and tests it on every task each time.

found = conche.error_matrix(model, train, test)
fig, axis = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
found.plot(axis)
plt.show()

# %%
# Above the diagonal the classes have not come yet, and every answer is wrong. Below it nothing is
# lost:

print(f"accuracy over all ten digits: {1 - found.average:.3f}")
print(f"forgetting: {found.forgetting:+.3f}")

# %%
# All samples at once would do no better:

at_once = conche.StreamPipeline(
    [("features", conche.CosineFeatures(500)), ("head", conche.ConcheClassifier(n_nodes=4))]
)
at_once.partial_fit(X[:1200], y[:1200])
print(f"trained on everything at once: {at_once.score(X[1200:], y[1200:]):.3f}")
