"""
How evidence finds the ridge
============================

The picture of docs/method.md::

    python examples/evidence.py --out docs/figures/evidence.svg

The same 60 columns, from few rows and from many. Above, how unlikely every ridge makes the rows
that were learnt; below, how well it predicts rows that were not. Dots are what Conche has chosen.
"""

from __future__ import annotations

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import conche
from conche.common.arrays import Array

COLUMNS, ROWS, TESTED = 60, (30, 90, 1000), 5000
ALPHAS = np.geomspace(0.03, 3000, 61)


def draw(rng: np.random.Generator, n: int, truth: Array) -> tuple[Array, Array]:
    """Rows of columns that share a part, and a target with noise of variance 1."""
    X = rng.normal(size=(n, COLUMNS)) + 0.7 * rng.normal(size=(n, 1))
    return X, X @ truth + rng.normal(size=n)


def unlikelihood(X: Array, y: Array, alpha: float) -> float:
    """Minus twice the logarithm of the likelihood, but for a constant and the weak prior."""
    n, p = X.shape
    y = (y - y.mean()) / y.std()
    values, vectors = np.linalg.eigh(np.corrcoef(X.T))
    b = vectors.T @ StandardScaler().fit_transform(X).T @ y / n
    left = 1 - np.sum(b**2 / (values + alpha / n))
    determinant = np.sum(np.log(np.maximum(values, 0) + alpha / n)) - p * np.log(alpha / n)
    return float(determinant + (n - 1) * np.log(left))


def test_error(train: tuple[Array, Array], test: tuple[Array, Array], alpha: float) -> float:
    """Mean square, of ridge regression on standardised columns."""
    model = make_pipeline(StandardScaler(), Ridge(alpha=alpha)).fit(*train)
    return float(np.mean((model.predict(test[0]) - test[1]) ** 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--out", default="evidence.svg")
    out = parser.parse_args().out
    rng = np.random.default_rng(0)
    plt.rcParams["svg.hashsalt"] = "evidence"  # the same file every time
    truth = 0.25 * rng.normal(size=COLUMNS)
    test = draw(rng, TESTED, truth)
    fig, axes = plt.subplots(
        2, len(ROWS), figsize=(8.5, 4.4), sharex=True, sharey="row", layout="constrained"
    )
    for n, (above, below) in zip(ROWS, axes.T, strict=True):
        X, y = draw(rng, n, truth)
        model = conche.ConcheRegressor().fit(X, y)
        chosen = float(np.mean(model.ridge_ / X.var(axis=0)))
        errors = [test_error((X, y), test, alpha) for alpha in ALPHAS]
        ours = test_error((X, y), test, chosen)
        f = np.array([unlikelihood(X, y, alpha) for alpha in ALPHAS])
        least = f.min()
        above.plot(ALPHAS, f - least, color="#0072B2")
        above.plot(chosen, unlikelihood(X, y, chosen) - least, "o", color="#0072B2")
        below.plot(ALPHAS, errors, color="#D55E00")
        below.plot(chosen, ours, "o", color="#D55E00")
        above.set(title=f"{n:,} rows", ylim=(-2, 42))
        below.set(xscale="log", xlabel="ridge (alpha)", ylim=(0.7, 5))
        for axis in (above, below):
            axis.axvline(chosen, color="grey", ls=":", lw=1.2)
            axis.grid(alpha=0.25)
        print(f"{n} rows: alpha {chosen:.3g}, error {ours:.3f}, the best {min(errors):.3f}")
    axes[0, 0].set_ylabel("f: less is likelier")
    axes[1, 0].set_ylabel("error on other rows")
    fig.savefig(out, metadata={"Date": None} if out.endswith(".svg") else None)


if __name__ == "__main__":
    main()
