"""
When the truth moves
====================

Never to forget is right as long as tasks have something in common that lasts. Where the truth
drifts, the past misleads. ``Memory(discount="auto")`` finds out from the stream itself: four sums
that forget at different speeds are judged on every task before they learn it.
"""

# %%
# Unknowns that turn by a little with every task, twenty columns on two nodes.

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import conche

rng = np.random.default_rng(0)
p, n, T, angle = 20, 40, 60, 0.05
first, second = np.linalg.qr(rng.normal(size=(p, 2)))[0].T


def task(t: int) -> conche.Task:
    """Forty samples of the truth as it is at time t."""
    X, w = rng.normal(size=(n, p)), np.cos(angle * t) * first + np.sin(angle * t) * second
    return conche.Task(X, X @ w + 0.3 * rng.normal(size=n), weights=w, noise_var=0.09)


stream = [task(t) for t in range(T)]

# %%
# Each model predicts the next task before it has seen it.

models = {
    "never forgets": conche.ConcheRegressor(n_nodes=2),
    "only the last task": conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(discount=0.0)),
    'discount="auto"': conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(discount="auto")),
}
errors: dict[str, list[float]] = {name: [] for name in models}
for now, following in pairwise(stream):
    for name, model in models.items():
        model.partial_fit(now.X, now.y)
        errors[name].append(conche.generalization_error(model.coef_, [following]))

fig, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (name, values), colour in zip(errors.items(), ("#D55E00", "#E69F00", "#0072B2"), strict=True):
    axis.plot(range(1, T), values, color=colour, lw=1.8, label=name)
axis.axhline(0.09, color="k", ls="--", lw=1.2, label="the noise")
axis.set(xlabel="tasks learnt", ylabel="error on the next task", ylim=(0, 1.2))
axis.grid(alpha=0.25)
axis.legend()
plt.show()

# %%
# What it chose, and what that brought over the second half of the stream:

print(f"discount: {models['discount=' + chr(34) + 'auto' + chr(34)].discount_}")
for name, values in errors.items():
    print(f"{name:20} {np.mean(values[T // 2 :]):.3f}")
