"""
When is a task done? The certificate
====================================

Nodes exchange vectors, round after round. Nobody sees the whole problem, and yet the coordinator
can say after each round how far the task is from its optimum *at most*: what the nodes send is
enough for a bound. ``tol`` ends the rounds by it.
"""

# %%
# Ridge regression with 400 columns on eight nodes, which keep to themselves what they know of the
# columns' curvature (``rank=0``). Three kinds of steps, all on the same messages.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import conche

task = conche.gaussian_tasks(1, n_samples=600, n_features=400, noise_var=0.1, seed=0)[0]
solver = conche.Memory(rank=0, ridge=40.0)
models = {
    "the paper's 1/K": conche.CoCoARegressor(n_nodes=8, solver=solver, n_rounds=60),
    "adaptive": conche.CoCoARegressor(n_nodes=8, solver=solver, steps="adaptive", n_rounds=60),
    "conjugate gradients": conche.CoCoARegressor(n_nodes=8, solver=solver, steps="cg", n_rounds=60),
}
for model in models.values():
    model.fit(task.X, task.y)

# %%
# ``bound`` in ``history_`` is the certificate. It falls as fast as the steps allow.

fig, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (name, model), colour in zip(models.items(), ("#D55E00", "#E69F00", "#0072B2"), strict=True):
    bounds = np.array([row["bound"] for row in model.history_], dtype=float)
    axis.semilogy(np.arange(1, len(bounds) + 1), bounds, color=colour, lw=2, label=name)
axis.set(xlabel="rounds", ylabel="above the optimum, at most", ylim=(1e-10, None))
axis.grid(alpha=0.25)
axis.legend()
plt.show()

# %%
# So we can ask for a distance instead of a number of rounds.

model = conche.CoCoARegressor(n_nodes=8, solver=solver, steps="cg", n_rounds=500, tol=1e-6)
model.fit(task.X, task.y)
last = model.history_[-1]
print(f"{len(model.history_)} rounds; at most {last['bound']:.1e} above the optimum")
print(f"{sum(row['bytes'] for row in model.history_):,} bytes were sent")
