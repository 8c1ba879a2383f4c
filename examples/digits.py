"""
Odd or even: one pass, or a hundred
===================================

Odd or even, in five tasks: a hundred repetitions of Algorithm 1 beside one pass of Conche::

    python examples/digits.py --data MNIST_FOLDER --out digits.png

The paper's Section IV-F: 3000 random cosine features on two nodes, 100 samples a task, test sets of
2000. Without --data: scikit-learn's embedded 8 x 8 digits.
"""

# sphinx_gallery_thumbnail_path = 'figures/digits.png'

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import conche
from conche.common.arrays import Array
from conche.tasks import embedded_digits, find_mnist, odd_even_mnist

LOSSES = ("squared", "logistic")
COLOURS = {"squared": "#0072B2", "logistic": "#D55E00"}


def rates(coefs: Array, test: list[conche.Task]) -> Array:
    """Error rate of every task (rows) for every estimate (columns of coefs)."""
    return np.array([np.mean((t.X @ coefs > 0) != (t.y[:, None] > 0), axis=0) for t in test])


def repeated(loss: str, train: list[conche.Task], passes: int) -> Array:
    """Algorithm 1, one round a task, after every pass: n_features x passes."""
    model = conche.CoCoAClassifier(n_nodes=2, loss=loss)
    out = []
    for _ in range(passes):
        for task in train:
            model.partial_fit(task.X, task.y, classes=[-1.0, 1.0])
        out.append(np.ravel(model.coef_))
    return np.stack(out, axis=1)


def once(loss: str, train: list[conche.Task]) -> Array:
    """Conche, each task seen once; without an intercept, as the others here."""
    model = conche.ConcheClassifier(n_nodes=2, loss=loss, fit_intercept=False, scaling=None)
    for task in train:
        model.partial_fit(task.X, task.y, classes=[-1.0, 1.0])
    return np.ravel(model.coef_)[:, None]


def run(folder: Path | None, seeds: int, passes: int) -> dict[str, Any]:
    """Error rates by method, task and pass, mean over the seeds."""
    found: dict[str, list[Array]] = {"offline": []}
    for seed in track(range(seeds), description="learning"):
        if folder is None:
            train, test = embedded_digits(3000, 0.7, seed=seed)
            train = [conche.Task(t.X[:100], t.y[:100]) for t in train]
        else:
            train, test = odd_even_mnist(folder, seed=seed)
        best = conche.offline_solution(train)[:, None]
        found["offline"].append(rates(best, test))
        for loss in LOSSES:
            found.setdefault(f"repeated {loss}", []).append(
                rates(repeated(loss, train, passes), test)
            )
            found.setdefault(f"once {loss}", []).append(rates(once(loss, train), test))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def table(found: dict[str, Any], passes: int, seeds: int, what: str) -> Table:
    """The error rates of the last pass, task by task."""
    out = Table(title=f"test error rate, {what}, mean of {seeds} seeds", title_justify="left")
    out.add_column("")
    for name in ("0/1", "2/3", "4/5", "6/7", "8/9", "average"):
        out.add_column(name, justify="right")
    rows = [("offline, all tasks at once", found["offline"][:, -1])]
    for loss in LOSSES:
        algorithm = found[f"repeated {loss}"]
        rows += [
            (f"Algorithm 1, {loss}, 1 pass", algorithm[:, 0]),
            (f"Algorithm 1, {loss}, {passes} passes", algorithm[:, -1]),
            (f"Conche, {loss}, 1 pass", found[f"once {loss}"][:, -1]),
        ]
    for name, values in rows:
        out.add_row(name, *(f"{v:.3f}" for v in values), f"{values.mean():.3f}")
    return out


def plot(found: dict[str, Any], passes: int, what: str, path: Path) -> None:
    """The mean error rate over the passes."""
    import matplotlib.pyplot as plt

    fig, axis = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
    x = np.arange(1, passes + 1)
    for loss in LOSSES:
        y = found[f"repeated {loss}"].mean(axis=0)
        axis.plot(x, y, color=COLOURS[loss], lw=1.8, label=f"Algorithm 1, {loss} loss")
        label = f"Conche, {loss} loss: one pass"
        look: dict[str, Any] = dict(
            marker="*", ms=17, ls="", mec="black", mew=0.6, clip_on=False, zorder=5
        )
        axis.plot(1, found[f"once {loss}"].mean(), color=COLOURS[loss], label=label, **look)
    level = found["offline"].mean()
    axis.axhline(level, color="black", ls="--", lw=1.2, label="offline: all tasks at once")
    axis.set(
        xscale="log",
        ylim=(0, None),
        xlabel="passes over the five tasks",
        ylabel="test error rate, mean over tasks",
        title=f"Odd or even, five tasks of 100 samples, two nodes ({what})",
    )
    axis.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
    fig.savefig(path, dpi=140)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--data", type=Path, help="folder with MNIST's four idx files")
    parser.add_argument("--out", type=Path, default=Path("digits.png"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=100)
    options = parser.parse_args()
    where = find_mnist(options.data)
    label = "MNIST" if where else "scikit-learn's embedded 8 x 8 digits"
    results = run(where, options.seeds, options.passes)
    Console().print(table(results, options.passes, options.seeds, label))
    plot(results, options.passes, label, options.out)
    print(options.out)
