"""
How many nodes? Theory beside simulation
========================================

The error of Algorithm 1 is known before anything is trained (Theorem 1 of the paper). More nodes
mean shorter steps: too few forget, too many learn too little. The best number lies between them,
and ``conche.plan`` finds it.
"""

# %%
# Sixteen tasks of 128 samples, 64 columns. Theory takes milliseconds; the simulation beside it
# draws every task anew in each of its trials.

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import numpy as np

import conche

nodes = [1, 2, 4, 8, 16, 32]
theory, mean, stderr = [], [], []
for n_nodes in nodes:
    partition = [64 // n_nodes] * n_nodes
    similarity = conche.theory.Similarity.shared(n_tasks=16, partition=partition, n_shared=48)
    theory.append(conche.theory.generalization_error(similarity, 128, noise_var=0.01)[-1])
    found = conche.simulate(16, 128, partition, n_shared=48, noise_var=0.01, trials=100, seed=0)
    mean.append(found.mean[-1])
    stderr.append(found.stderr[-1])

# %%
# The plan looks at the same numbers, and at what the Conche method would reach.

plan = conche.plan(n_features=64, n_samples=128, n_tasks=16, n_shared=48, noise_var=0.01)
print(textwrap.fill(str(plan), 88))

# %%
# Dots are theory, bars are four standard errors of the simulation.

fig, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
axis.errorbar(nodes, mean, 4 * np.array(stderr), color="#0072B2", capsize=4, label="simulation")
axis.plot(nodes, theory, "o", color="#D55E00", label="Theorem 1")
axis.axhline(plan.memory.error, color="k", ls="--", lw=1.2, label="the Conche method, foreseen")
axis.axvline(plan.n_nodes, color="grey", ls=":", label=f"advised: {plan.n_nodes} nodes")
axis.set(xscale="log", xlabel="nodes", ylabel="error over all tasks, after the last")
axis.set_xticks(nodes, [str(n) for n in nodes])
axis.minorticks_off()
axis.grid(alpha=0.25)
axis.legend()
plt.show()

# %%
# Simulation and theory agree:

farthest = np.max(np.abs(np.array(mean) - theory) / stderr)
print(f"the farthest point is {farthest:.1f} standard errors from theory")
