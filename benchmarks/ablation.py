"""What each ingredient of the Conche method adds: the table and figure of docs/method.md.

    python -m benchmarks.ablation --out docs/figures [--data DIR]

DIR holds ``beijing-air/beijing12.npz``; without it the Beijing stream is left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.nodes import Partition
from conche.nodes.solvers import Context, SolverOption
from conche.nodes.solvers.memory import MemorySolver, default_rank
from conche.nodes.solvers.sketch import cross_norm, probes, shrinkage, sketch_matrix
from conche.tasks import embedded_digits

NODES = (2, 8, 32, 128)
SEEDS = 5
Learn = Callable[[Sequence[Task], int], Array]
Pair = tuple[list[Task], list[Task]]


class Believing(MemorySolver):
    """theta = 0: the sketch is believed as it is."""

    def agree(self, report: Array, context: Context) -> Context:
        return replace(super().agree(report, context), shrinkage=0.0)


class Unshrunk(SolverOption):
    """The same, as a model's ``solver``."""

    def solver(self, partition: Partition, seed: int) -> Believing:
        return Believing(default_rank(partition.n_features, len(partition)), seed=seed)


def unanchored(train: Sequence[Task], K: int) -> Array:
    """The sketch keeps old labels too, S_t y_t, and asks Abar w to meet them. Solved densely."""
    p = train[0].n_features
    m = default_rank(p, K)
    blocks = list(Partition.even(p, K))
    own = np.zeros((p, p), bool)
    for b in blocks:
        own[np.ix_(b, b)] = True
    w, H, Abar, ybar = np.zeros(p), np.zeros((p, p)), np.zeros((m, p)), np.zeros(m)
    ridge = 4 * np.mean(np.var(train[0].X, axis=0))
    for t, task in enumerate(train):
        theta = 1.0
        if t:
            x = probes(0, m)
            Mx = [Abar[:, b] @ (Abar[:, b].T @ x) for b in blocks]
            total = sum(Mx, np.zeros_like(x))
            observed = cross_norm(total, sum(float(np.sum(v**2)) for v in Mx))
            traces = np.array([np.trace(H[np.ix_(b, b)]) for b in blocks])
            theta = shrinkage(observed, float(traces.sum() ** 2 - np.sum(traces**2)), m)
        past = (1 - theta) * Abar.T @ Abar
        left = task.X.T @ task.X + past + theta * np.where(own, H, 0) + ridge * np.eye(p)
        right = task.X.T @ (task.y - task.X @ w) + (1 - theta) * Abar.T @ (ybar - Abar @ w)
        w = w + np.linalg.solve(left, right)
        S = sketch_matrix(0, t, task.n_samples, m, "float64")
        H, Abar, ybar = H + task.X.T @ task.X, Abar + S @ task.X, ybar + S @ task.y
    return w


def by_model(**options: Any) -> Learn:
    def learn(train: Sequence[Task], K: int) -> Array:
        model = conche.CoCoARegressor(n_nodes=K, **options)
        for task in train:
            model.partial_fit(task.X, task.y)
        return model.coef_

    return learn


CG: dict[str, Any] = dict(n_rounds=10, steps="cg")
METHODS: dict[str, Learn] = {
    "Algorithm 1 (exact, 1 round)": by_model(),
    "damped, 1 round": by_model(solver="damped"),
    "block memory": by_model(solver=Memory(rank=0), **CG),
    "sketch, not anchored": unanchored,
    "sketch, no shrinkage": by_model(solver=Unshrunk(), **CG),
    "Conche: all of it": by_model(solver="memory", **CG),
}


@dataclass(frozen=True)
class Stream:
    title: str
    draw: Callable[[int], Pair]
    error: Callable[[Array, Sequence[Task]], float]
    seeds: int = SEEDS


def model_stream(correlation: float, noise_var: float, n: int) -> Callable[[int], Pair]:
    def draw(seed: int) -> Pair:
        tasks = conche.gaussian_tasks(32, n, 128, 96, noise_var, correlation, seed)
        return tasks, tasks

    return draw


def mean_square(w: Array, tasks: Sequence[Task]) -> float:
    return float(np.mean([np.mean((t.y - t.X @ w) ** 2) for t in tasks]))


def error_rate(w: Array, tasks: Sequence[Task]) -> float:
    return float(np.mean([np.mean(np.sign(t.X @ w) != t.y) for t in tasks]))


def streams(data: Path | None) -> list[Stream]:
    chosen = [
        Stream("paper's model, n=16", model_stream(0, 0.01, 16), conche.generalization_error),
        Stream(
            "paper's model, correlated 0.9", model_stream(0.9, 0.3, 64), conche.generalization_error
        ),
        Stream("digits, odd/even", lambda s: embedded_digits(seed=s), error_rate),
    ]
    if data is not None:
        from tests.helpers.streams import beijing

        chosen.append(Stream("Beijing air", lambda s: beijing(s, data=data), mean_square, 1))
    return chosen


def measure(stream: Stream) -> tuple[dict[str, list[float]], float]:
    errors = {name: np.zeros(len(NODES)) for name in METHODS}
    offline = 0.0
    for seed in range(stream.seeds):
        train, test = stream.draw(seed)
        offline += stream.error(conche.offline_solution(train), test) / stream.seeds
        for name, learn in METHODS.items():
            for i, K in enumerate(NODES):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", conche.NearSquareWarning)
                    errors[name][i] += stream.error(learn(train, K), test) / stream.seeds
    return {name: list(values) for name, values in errors.items()}, offline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    chosen = streams(arguments.data)
    figure, axes = plt.subplots(1, len(chosen), figsize=(3.6 * len(chosen), 4.4))
    colours = ["#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#0072B2"]
    for axis, stream in zip(axes, chosen, strict=True):
        errors, offline = measure(stream)
        print(f"\n| {stream.title} | " + " | ".join(f"K = {K}" for K in NODES) + " |")
        print("|---" * (len(NODES) + 1) + "|")
        for (name, values), colour in zip(errors.items(), colours, strict=True):
            cells = [f"{v:.4f}" if v < 100 else f"{v:.0e}" for v in values]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            width = 2.4 if name.startswith("Conche") else 1.4
            top, shown = 6 * offline, np.minimum(values, 60 * offline)
            axis.plot(NODES, shown, marker="o", ms=4, lw=width, color=colour, label=name)
            off = [K for K, v in zip(NODES, values, strict=True) if v > top]
            axis.plot(
                off,
                [top] * len(off),
                ls="",
                marker="^",
                ms=9,
                color=colour,
                clip_on=False,
                zorder=9,
            )
            axis.set_ylim(0.9 * min(offline, *errors["Conche: all of it"]), top)
        print(f"| offline | {offline:.4f} |" + " |" * (len(NODES) - 1))
        axis.axhline(offline, color="black", ls="--", lw=1, label="offline")
        axis.set(title=stream.title, xlabel="number of nodes", xscale="log", yscale="log")
        axis.set_xticks(NODES, [str(K) for K in NODES])
        axis.minorticks_off()
        ticks = [offline * f for f in (1, 1.5, 2, 3, 4, 6)]
        axis.set_yticks(ticks, [f"{t:.3f}" for t in ticks])
        axis.grid(alpha=0.25, which="both")
    axes[0].set_ylabel("error over all tasks")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=8)
    figure.subplots_adjust(left=0.06, right=0.99, bottom=0.25, top=0.92, wspace=0.25)
    arguments.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.out / "ablation.png", dpi=110)


if __name__ == "__main__":
    main()
