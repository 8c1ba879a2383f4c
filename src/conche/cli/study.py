"""Commands that study: demo, plan, reproduce."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from .app import app


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("demo"),
) -> None:
    """Learn two streams and compare Algorithm 1, Conche and offline. Takes under a minute."""
    from .. import demo as demonstration

    demonstration.main(out)


@app.command()
def plan(
    features: Annotated[int | None, typer.Option(help="Columns in all (p).")] = None,
    samples: Annotated[int | None, typer.Option(help="Samples of a task (n_t).")] = None,
    tasks: Annotated[int | None, typer.Option(help="Number of tasks (T).")] = None,
    shared: Annotated[
        float | None, typer.Option(help="Unknowns that all tasks have in common (p_S).")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Noise variance (sigma^2).")] = None,
    energy: Annotated[
        float | None, typer.Option(help="Signal energy, |w*|^2; 1 unless given.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Estimate all of that from a folder or glob of task files instead."),
    ] = None,
    target: Annotated[str, typer.Option(help="With --data: the target's column.")] = "y",
    nodes: Annotated[
        int | None, typer.Option(help="The number of nodes is given: look for remedies.")
    ] = None,
    nodes_max: Annotated[int | None, typer.Option(help="No more nodes than this.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the error against nodes here.")] = None,
) -> None:
    """How many nodes? Predict the error of Algorithm 1 without training, and advise.

    From numbers:  conche plan --features 1024 --samples 2048 --tasks 16 --shared 768 --noise 0.01

    From data:     conche plan --data months/ --target pm25
    """
    from .. import reports
    from ..planner import plan as advise
    from ..planner import plan_from_tasks
    from ..tasks import read_stream

    numbers = {
        "--features": features, "--samples": samples, "--tasks": tasks, "--shared": shared,
        "--noise": noise,
    }  # fmt: skip
    if data is not None:
        given = [k for k, value in (numbers | {"--energy": energy}).items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} is estimated where --data is given: leave it out")
        with reports.waiting("reading and planning"), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            advice = plan_from_tasks(read_stream(data, target), nodes, nodes_max)
        for warning in said:
            print(f"conche: {warning.message}", file=sys.stderr)
    else:
        missing = [name for name, value in numbers.items() if value is None]
        if missing:
            raise ValueError(f"{missing[0]} is missing (or give --data)")
        assert features is not None and samples is not None and tasks is not None
        assert shared is not None and noise is not None
        with reports.waiting("planning"):
            advice = advise(
                features, samples, tasks, shared, noise, 1.0 if energy is None else energy, nodes,
                nodes_max,
            )  # fmt: skip
    if plot is not None:
        reports.draw_plan(advice, plot)
    if json:
        reports.print_json(advice)
    else:
        reports.print_plan(advice, plot)


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="fig2 ... fig12, all, or a spec of your own (FILE.toml)."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="quick (all in about a minute), or the paper's own sizes: paper.")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("figures"),
    jobs: Annotated[int | None, typer.Option(help="Processes; all cores unless given.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with theory and with the paper's words.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder with MNIST's idx files, for fig11 and fig12.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
) -> None:
    """Make the paper's figures, theory beside simulation; or answer a question of your own.

    All of them, small:     conche reproduce all --check

    As the paper has them:  conche reproduce all --scale paper --data MNIST_FOLDER --check

    Your own:               conche reproduce my.toml

    Each gets a folder with table.csv, figure.png, figure.svg and manifest.json. Stopped at any
    moment, the same command goes on where it stood. Exit status 1: a check failed.
    """
    import joblib
    from rich.console import Console

    from ..figures import reproduce as figure_making

    if list_them:
        Console().print(figure_making.listing())
        return
    if not figures:
        raise ValueError("which figure? fig2 ... fig12, all, or a .toml file; --list shows them")
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs {jobs} must be at least 1")
    if seed < 0:
        raise ValueError(f"--seed {seed} must not be negative")
    cores = joblib.cpu_count()  # more processes than that would only fight
    if not figure_making.reproduce(
        figures, scale, out, min(jobs or cores, cores), seed, check, data
    ):
        raise typer.Exit(1)
