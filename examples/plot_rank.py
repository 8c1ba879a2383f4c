"""
What less memory costs
======================

With more columns than ``rank`` the Conche method keeps the past's principal directions, and the
blocks' own curvature. What is cut off is measured while it learns: ``offline_gap_`` says how far
the objective of training on everything at once is above its minimum.
"""

# %%
# The hardest case: columns that have nothing in common, so that no direction matters more than
# another. 120 of them live on six nodes.

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt

import conche

tasks = conche.gaussian_tasks(
    n_tasks=6, n_samples=150, n_features=120, n_shared=120, noise_var=0.1, seed=0
)

# %%
# The same stream with room for ever more directions. A warning says where more than a percent of
# the objective is lost; here that is what we look for.

ranks = [5, 15, 30, 60, 90, 121]
error, estimate, bound = [], [], []
for rank in ranks:
    model = conche.ConcheRegressor(n_nodes=6, solver=conche.Memory(rank=rank))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in tasks:
            model.partial_fit(task.X, task.y)
    error.append(conche.generalization_error(model.coef_, tasks))
    gap = model.offline_gap_
    estimate.append(gap.estimate)
    bound.append(gap.bound)
offline = conche.generalization_error(conche.offline_solution(tasks), tasks)

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
left.plot(ranks, error, "o-", color="#0072B2", label="Conche")
left.axhline(offline, color="k", ls="--", lw=1.2, label="offline")
left.axhline(0.1, color="grey", ls=":", lw=1.2, label="the noise")
left.set(xlabel="rank", ylabel="error over all tasks")
right.plot(ranks, estimate, "o-", color="#009E73", label="estimated")
right.plot(ranks, bound, "s--", color="#D55E00", label="at most")
right.set(xlabel="rank", ylabel="offline gap, as a share of the objective")
right.set_yscale("symlog", linthresh=1e-3)
for axis in (left, right):
    axis.grid(alpha=0.25)
    axis.legend()
plt.show()

# %%
# At the rank of all columns and the intercept nothing is cut, and the gap is zero:

for rank, share, value in zip(ranks, estimate, error, strict=True):
    print(f"rank {rank:3d}: gap {share:6.2%}, error {value:.3f}")
