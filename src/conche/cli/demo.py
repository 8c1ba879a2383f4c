"""What a newcomer sees first: two streams, Algorithm 1 beside Conche beside offline."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..common.arrays import Array
from ..common.extras import need
from ..common.scores import error_rate
from ..common.words import counted
from ..errors import NearSquareWarning
from ..estimators import CoCoAClassifier, CoCoARegressor, ConcheClassifier, ConcheRegressor
from ..metrics import error_matrix, generalization_error
from ..offline import offline_solution
from ..tasks import Task, embedded_digits, gaussian_tasks
from .console import Console

NODES = (1, 4, 16, 64)
SEEDS = 2
METHODS = ("Algorithm 1", "Conche")
COLOURS = {"Algorithm 1": "#D55E00", "Conche": "#0072B2"}  # Okabe-Ito, safe for all eyes


@dataclass(frozen=True)
class Experiment:
    """One stream: what it is, how to draw it, and how its errors are counted."""

    title: str
    story: str
    unit: str
    task_label: str
    models: tuple[Any, Any]
    draw: Callable[[int], tuple[list[Task], list[Task]]]
    error: Callable[[Array, float, Task], float]  # of weights and an intercept on a task


def _synthetic(seed: int) -> tuple[list[Task], list[Task]]:
    tasks = gaussian_tasks(16, 256, 128, n_shared=96, noise_var=0.01, seed=seed)
    return tasks, tasks


def _error_rate(coef: Array, intercept: float, task: Task) -> float:
    return 100 * error_rate(np.sign(task.X @ np.ravel(coef) + intercept), task.y)


EXPERIMENTS = (
    Experiment(
        title="Synthetic stream",
        story="16 tasks of 256 samples; of 128 unknowns the tasks share 96 (the paper's model)",
        unit="generalization error",
        task_label="t={}",
        models=(CoCoARegressor, ConcheRegressor),
        draw=_synthetic,
        error=lambda coef, intercept, task: generalization_error(coef, [task]) + intercept**2,
    ),
    Experiment(
        title="Handwritten digits, odd or even",
        story="5 tasks: 0/1, 2/3, 4/5, 6/7, 8/9; 500 random cosine features of 8 x 8 pixels",
        unit="test error in %",
        task_label="{}",
        models=(CoCoAClassifier, ConcheClassifier),
        draw=lambda seed: embedded_digits(seed=seed),
        error=_error_rate,
    ),
)


@dataclass(frozen=True)
class Result:
    """Errors of one experiment: R[method, nodes] is a task-by-task matrix, averaged over seeds."""

    experiment: Experiment
    names: list[str]
    R: dict[tuple[str, int], Array]
    offline: Array


def run(experiment: Experiment, tick: Callable[[], None]) -> Result:
    """Learn it with every method, number of nodes and seed; ``tick`` is called after each."""
    R: dict[tuple[str, int], list[Array]] = {(m, K): [] for m in METHODS for K in NODES}
    offline = []
    names: list[str] = []
    for seed in range(SEEDS):
        train, test = experiment.draw(seed)
        names = [str(t.name) for t in train]
        best = offline_solution(train)
        offline.append([experiment.error(best, 0.0, task) for task in test])
        for method, make in zip(METHODS, experiment.models, strict=True):
            for K in NODES:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NearSquareWarning)
                    matrix = error_matrix(make(n_nodes=K), train, test, partial(_of, experiment))
                R[method, K].append(matrix.values)
                tick()
    means = {key: np.mean(runs, axis=0) for key, runs in R.items()}
    return Result(experiment, names, means, np.mean(offline, axis=0))


def _of(experiment: Experiment, model: Any, task: Task) -> float:
    return experiment.error(model.coef_, float(np.ravel(model.intercept_)[0]), task)


def table(result: Result) -> Table:
    """Per-task errors after the last task, their average, and forgetting."""
    experiment = result.experiment
    shown = range(len(result.names)) if len(result.names) <= 6 else (0, 5, 10, 15)
    title = f"{experiment.title}: {experiment.unit}, per task, after the last one"
    out = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    out.add_column("", no_wrap=True)
    out.add_column("nodes", justify="right", no_wrap=True)
    for j in shown:
        out.add_column(experiment.task_label.format(result.names[j]), justify="right", no_wrap=True)
    out.add_column("average", justify="right", style="bold", no_wrap=True)
    out.add_column("forgetting", justify="right", no_wrap=True)
    digits = 1 if "%" in experiment.unit else 3
    for method in METHODS:
        for K in NODES:
            values = result.R[method, K]
            forgot = (values[-1] - np.diag(values))[:-1].mean()
            cells = [f"{values[-1][j]:.{digits}f}" for j in shown]
            cells += [f"{values[-1].mean():.{digits}f}", f"{forgot:+.{digits}f}"]
            name = "" if NODES.index(K) else method
            out.add_row(name, str(K), *cells, end_section=NODES.index(K) == len(NODES) - 1)
    cells = [f"{result.offline[j]:.{digits}f}" for j in shown]
    out.add_row("offline", "-", *cells, f"{result.offline.mean():.{digits}f}", "-")
    return out


def plot(results: Sequence[Result], path: Path) -> None:
    """Two panels per experiment: after each task, and at the end over the number of nodes."""
    plt = need("matplotlib.pyplot", "cli", "drawing")
    size = (10.5, 4.2 * len(results))
    fig, axes = plt.subplots(len(results), 2, figsize=size, squeeze=False, layout="constrained")
    for (left, right), result in zip(axes, results, strict=True):
        _plot_learning(left, result)
        _plot_end(right, result)
        for axis in (left, right):
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.25)
    handles = axes[0][0].get_legend_handles_labels()
    fig.legend(*handles, loc="outside lower center", ncols=4, fontsize=8)
    fig.savefig(path, dpi=130)
    plt.close(fig)


def _plot_learning(axis: Any, result: Result) -> None:
    steps = np.arange(1, len(result.names) + 1)
    marks = dict(zip(NODES, "osD^", strict=False))
    look = dict(ms=4, lw=1.2, alpha=0.8)
    for (method, K), R in result.R.items():
        seen = [row[: i + 1].mean() for i, row in enumerate(R)]
        label = f"{method}, {counted(K, 'node')}"
        axis.plot(steps, seen, color=COLOURS[method], marker=marks[K], label=label, **look)
    axis.set(
        xlabel="tasks learnt",
        ylabel=f"{result.experiment.unit}\n(mean over tasks seen)",
        title=f"{result.experiment.title}: after each task",
    )
    axis.xaxis.get_major_locator().set_params(integer=True)


def _plot_end(axis: Any, result: Result) -> None:
    for method in METHODS:
        final = [result.R[method, K][-1].mean() for K in NODES]
        axis.plot(NODES, final, color=COLOURS[method], marker="o", lw=2, label=method)
    best = result.offline.mean()
    axis.axhline(best, color="black", ls="--", lw=1.2, label="offline: all tasks at once")
    axis.set(
        xlabel="number of nodes",
        ylabel=f"{result.experiment.unit}\n(mean over all tasks)",
        title="At the end, over the number of nodes",
        xscale="log",
    )
    axis.set_xticks(NODES, [str(K) for K in NODES])
    axis.minorticks_off()
    axis.legend(fontsize=8)


def show(out: Path) -> None:
    """Learn both streams, print the tables, write the plot."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    console.print(
        "\nTasks arrive one after another. The columns live on several nodes, which exchange "
        "predictions and never features. What is left at the end?\n"
        "  [bold]Algorithm 1[/bold]  CoCoA, one round a task: it forgets\n"
        "  [bold]Conche[/bold]       the past kept as curvature, no sample of it\n"
        "  [bold]offline[/bold]      least squares on all tasks at once: the line to reach\n"
    )
    total = len(EXPERIMENTS) * SEEDS * len(METHODS) * len(NODES)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("learning two streams", total=total)
        results = [run(one, lambda: progress.advance(bar)) for one in EXPERIMENTS]
    for result in results:
        console.print(f"[dim]{result.experiment.story}; mean of {SEEDS} seeds[/dim]")
        console.print(table(result))
        console.print()
    path = out / "demo.png"
    plot(results, path)
    console.print(f"The error after each task, and over the number of nodes: [bold]{path}[/bold]")
