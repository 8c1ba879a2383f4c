"""
Weights with zeros
==================

``ElasticNet`` keeps few weights and forgets no task: after every one of them the weights are those
of scikit-learn's ``ElasticNet`` on all tasks at once, with the same zeros, for any number of nodes.
"""

# %%
# Of sixty columns five matter. They live on four nodes.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import ElasticNet

import conche

rng = np.random.default_rng(0)
truth = np.zeros(60)
truth[[3, 17, 18, 40, 55]] = [1.0, -0.8, 0.6, -0.4, 0.2]
stream = []
for _ in range(5):
    X = rng.normal(size=(80, 60))
    stream.append(conche.Task(X, X @ truth + 0.5 * rng.normal(size=80)))

# %%
# One pass over the tasks, and scikit-learn on all of them:

model = conche.CoCoARegressor(n_nodes=4, solver=conche.ElasticNet(0.05, l1_ratio=0.9))
for task in stream:
    model.partial_fit(task.X, task.y)
X_all, y_all = np.vstack([t.X for t in stream]), np.concatenate([t.y for t in stream])
sklearn = ElasticNet(0.05, l1_ratio=0.9, fit_intercept=False, tol=1e-10).fit(X_all, y_all)
print(f"weights that are not zero: {np.count_nonzero(model.coef_)} of {len(model.coef_)}")
print(f"same zeros: {bool(((model.coef_ == 0) == (sklearn.coef_ == 0)).all())}")
print(f"largest difference: {np.abs(model.coef_ - sklearn.coef_).max():.1e}")

# %%
# And the weights for many strengths of the penalty:

path = conche.elastic_net_path(X_all, y_all, l1_ratio=0.9, n_nodes=4, alphas=40)
fig, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
for weights, true in zip(path.coefs, truth, strict=True):
    axis.semilogx(path.alphas, weights, color="#0072B2" if true else "0.8", lw=1.6 if true else 0.8)
for true in truth[truth != 0]:
    axis.axhline(true, color="#D55E00", ls=":", lw=0.8)
axis.invert_xaxis()
axis.set(xlabel="alpha, from strong to weak", ylabel="weight")
axis.set_title("blue: the columns that matter; dotted: their true weights", fontsize=10)
plt.show()
