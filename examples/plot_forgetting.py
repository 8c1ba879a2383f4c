"""
A stream, with and without memory
=================================

Twelve tasks arrive one after another, similar but not the same. Algorithm 1 starts every task at
the last estimate and remembers nothing else; the Conche method keeps the past as curvature. Which
of them still knows the first task when the last one has been learnt?
"""

# %%
# The stream is drawn from the paper's model: 64 columns on four nodes, 200 samples a task, and
# three quarters of the unknowns in common to all tasks.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import conche

tasks = conche.gaussian_tasks(
    n_tasks=12, n_samples=200, n_features=64, n_shared=48, noise_var=0.05, seed=0
)
models = {
    "Algorithm 1, one node": conche.CoCoARegressor(n_nodes=1),
    "Algorithm 1, four nodes": conche.CoCoARegressor(n_nodes=4),
    "Conche, four nodes": conche.ConcheRegressor(n_nodes=4),
}

# %%
# One ``partial_fit`` is one task. After each we ask for the error on *all* tasks, seen or not,
# which the true unknowns give exactly.

errors: dict[str, list[float]] = {}
for name, model in models.items():
    errors[name] = []
    for task in tasks:
        model.partial_fit(task.X, task.y)
        errors[name].append(conche.generalization_error(model.coef_, tasks))
offline = [
    conche.generalization_error(conche.offline_solution(tasks[: t + 1]), tasks)
    for t in range(len(tasks))
]

# %%
# With one node Algorithm 1 solves the newest task and forgets the others. Four nodes hold it back,
# which helps. Conche is the solution of training on all tasks so far at once, from one pass.

fig, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (name, values), colour in zip(errors.items(), ("#D55E00", "#E69F00", "#0072B2"), strict=True):
    axis.plot(range(1, 13), values, color=colour, lw=2, label=name)
axis.plot(range(1, 13), offline, "k--", lw=1.2, label="offline: all tasks so far at once")
axis.set(xlabel="tasks learnt", ylabel="error over all tasks", ylim=(0, None))
axis.grid(alpha=0.25)
axis.legend()
plt.show()

# %%
# The numbers at the end:

for name, values in errors.items():
    print(f"{name:24} {values[-1]:.3f}")
print(f"{'offline':24} {offline[-1]:.3f}")
assert np.isclose(errors["Conche, four nodes"][-1], offline[-1], rtol=0.02)
