"""The command line: thin. Exit status 0 done, 1 a check failed, 2 bad usage or bad input."""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from . import __version__
from .network.base import NodeError
from .network.mpi import end_all, launched_rank

app = typer.Typer(
    help="Distributed continual learning with CoCoA.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"conche {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("demo"),
) -> None:
    """Learn two streams and compare Algorithm 1, Conche and offline. Takes under a minute."""
    from . import demo as demonstration

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
    from . import reports
    from .planner import plan as advise
    from .planner import plan_from_tasks
    from .tasks import read_stream

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

    from .figures import reproduce as figure_making

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


Target = Annotated[str, typer.Option(help="The target's column.")]
TaskColumn = Annotated[
    str | None, typer.Option(help="STREAM is one table; this column says which task a row is of.")
]


@app.command()
def train(
    stream: Annotated[str, typer.Argument(help="Folder or glob: one file per task, name order.")],
    target: Target,
    out: Annotated[Path, typer.Option(help="Write the model here.")],
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes; columns split evenly.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="JSON or TOML: nodes, and the columns each of them holds.")
    ] = None,
    task_column: TaskColumn = None,
    features: Annotated[
        str | None, typer.Option(help="Only these columns (names or patterns, comma-separated).")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="All columns but these.")] = None,
    solver: Annotated[
        str, typer.Option(help="memory: does not forget. damped, exact: Algorithm 1.")
    ] = "memory",
    rounds: Annotated[int | None, typer.Option(help="Rounds a task; 10 (memory) or 1.")] = None,
    acceleration: Annotated[
        str | None, typer.Option(help="cg or none; cg is the default of memory.")
    ] = None,
    damping: Annotated[str | None, typer.Option(help="A number, or auto.")] = None,
    sketch: Annotated[int | None, typer.Option(help="Rows of the shared sketch (memory).")] = None,
    discount: Annotated[float | None, typer.Option(help="Weight of the past per task.")] = None,
    classify: Annotated[
        bool, typer.Option("--classify", help="The target is a label (text always is).")
    ] = False,
    classes: Annotated[
        str | None, typer.Option(help="All labels, where the first task has not all of them.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="With labels: squared (unless given) or logistic.")
    ] = None,
    scaling: Annotated[
        str, typer.Option(help="Standardise columns by the first task(s), running, or none.")
    ] = "first",
    missing: Annotated[
        str, typer.Option(help="Missing values: refuse, or fill with the column's mean.")
    ] = "refuse",
    intercept: Annotated[bool, typer.Option(help="Add a constant to the first node.")] = True,
    network: Annotated[
        str, typer.Option(help="local; mpi (a node a rank, start with mpiexec); ray.")
    ] = "local",
    seed: Annotated[int, typer.Option(help="Of the shared sketch.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write the model here after every task.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")
    ] = False,
) -> None:
    """Learn a stream of task files: Parquet, CSV or npz.

    conche train months/ --target pm25 --nodes 12 --checkpoint state/ --out model.conche

    Every node reads its own columns. With --checkpoint, a run that was stopped at any moment goes
    on with --resume, and ends with the same model to the last bit.
    """
    from . import reports, training
    from .tasks import FileStream, read_groups

    files = FileStream(
        stream, target, task_column, _listed(features), _listed(drop) or [],
        "refuse" if missing == "refuse" else "keep",
    )  # fmt: skip
    labels = classify or files.task(0).y.dtype.kind == "U"
    for option, given in (("--loss", loss), ("--classes", classes)):
        if given is not None and not labels:
            raise ValueError(f"{option} is for labels: the target has numbers (--classify?)")
    known = None if classes is None else _labels(classes, files.task(0).y)
    if groups is not None and nodes is not None:
        raise ValueError("--nodes or --groups, not both")
    if acceleration not in (None, "cg", "none"):
        raise ValueError(f"--acceleration {acceleration} must be cg or none")
    parameters = {
        "n_nodes": nodes, "n_rounds": rounds, "sketch_size": sketch, "discount": discount,
        "damping": _damping(damping), "seed": seed, "network": network,
        "fit_intercept": intercept, "scaling": None if scaling == "none" else scaling,
        "missing": missing, "loss": loss,
        "partition": None if groups is None else list(read_groups(groups, files.columns).values()),
    }  # fmt: skip
    model = training.make_model(solver, labels, **parameters)
    if acceleration is not None:
        model.set_params(acceleration=None if acceleration == "none" else "cg")
    if checkpoint is not None:
        if checkpoint.exists() and not checkpoint.is_dir():
            raise ValueError(f"{checkpoint}: is not a folder")
        if resume:
            model = training.resumed(model, checkpoint, files, known)
        elif (checkpoint / training.CHECKPOINT).exists():
            raise ValueError(f"{checkpoint}: has a checkpoint; --resume it, or choose another")
    elif resume:
        raise ValueError("--resume needs --checkpoint")
    reports.check_writable(out)
    with reports.learning(files.names, getattr(model, "n_tasks_seen_", 0), labels) as report:
        training.train(model, files, classes=known, checkpoint=checkpoint, report=report)
    conche_save(model, out)
    reports.trained(model, out)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that conche train wrote.")],
    file: Annotated[Path, typer.Argument(help="Parquet, CSV or npz with the model's columns.")],
    out: Annotated[
        Path | None, typer.Option(help="Write .csv or .parquet here; else CSV to the screen.")
    ] = None,
) -> None:
    """Predict for the rows of a file; columns are matched by name."""
    from . import reports, training
    from .checkpoint import load

    if out is not None:
        reports.check_writable(out, (".csv", ".parquet"))
    loaded = load(model)
    reports.write_predictions(*training.predict(loaded, file), loaded, out)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model that conche train wrote.")],
    stream: Annotated[str, typer.Argument(help="Test tasks: folder or glob, one file per task.")],
    target: Target,
    task_column: TaskColumn = None,
    offline: Annotated[
        str | None,
        typer.Option(help="Training stream: beside it, least squares on all of it at once."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the error matrix here.")] = None,
) -> None:
    """Test a model on every task: the error matrix, its average, and forgetting.

    conche evaluate model.conche test/ --target pm25 --offline train/ --plot matrix.png
    """
    from . import reports, training
    from .checkpoint import load
    from .tasks import FileStream

    if plot is not None:
        reports.check_writable(plot, reports.FORMATS)
    loaded = load(model)
    names = getattr(loaded, "feature_names_in_", None)
    options: dict[str, Any] = {
        "task_column": task_column, "columns": None if names is None else list(names),
        "missing": "keep" if loaded.missing == "mean" else "refuse",
    }  # fmt: skip
    test = FileStream(stream, target, **options)
    training_stream = None if offline is None else FileStream(offline, target, **options)
    with reports.waiting("evaluating"):
        found = training.evaluate(loaded, test, training_stream)
    if plot is not None:
        reports.draw_evaluation(found, plot)
    if json:
        reports.print_evaluation_json(found)
    else:
        reports.print_evaluation(found, plot)


def conche_save(model: Any, path: Path) -> None:
    from .checkpoint import save

    save(model, path, timings=False)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _damping(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--damping {text} must be a number or auto") from None


def _labels(text: str, y: Any) -> list[Any]:
    """Labels as the target has them: texts or numbers."""
    parts = _listed(text) or []
    if y.dtype.kind == "U":
        return parts
    if y.dtype.kind == "b" and set(parts) <= {"True", "False", "true", "false"}:
        return [part in ("True", "true") for part in parts]
    try:
        labels = [float(part) for part in parts]
    except ValueError:
        raise ValueError(f"--classes {text}: the target has numbers") from None
    if y.dtype.kind in "iu" and any(label != int(label) for label in labels):
        raise ValueError(f"--classes {text}: the target has whole numbers")
    return [label if y.dtype.kind == "f" else int(label) for label in labels]


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit status 2."""
    warnings.showwarning = _warn
    if launched_rank():  # on MPI only the first rank speaks
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except Exception as error:
        _fail(error)


def _fail(error: Exception) -> None:
    """One line and exit status 2. Of several ranks the first speaks, and ends all of them; another
    one speaks only if the first does not, because nothing is wrong there."""
    line = f"conche: {_one_line(error)}"
    rank = launched_rank()
    if rank:
        if isinstance(error, NodeError):  # all ranks know
            sys.exit(2)
        time.sleep(2)
        line = f"{line} (rank {rank})"
    print(line, file=sys.stderr)
    if not isinstance(error, NodeError):
        end_all(2)
    sys.exit(2)


def _warn(message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Our own warnings, one line each; overflows show in the results, or end the run."""
    if not issubclass(category, RuntimeWarning | DeprecationWarning | FutureWarning):
        print(f"conche: {' '.join(str(message).split())}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    """What is wrong, for the errors that a user can cause; any other is ours, and is raised."""
    if hasattr(error, "format_message"):  # of the option parser
        message = str(error.format_message())
    elif isinstance(error, typer.Abort):
        message = "interrupted"
    elif isinstance(error, MemoryError):
        message = "not enough memory for that"
    elif isinstance(error, ValueError | ArithmeticError | OSError | RuntimeError):
        message = str(error)
    else:
        raise error
    return " ".join(message.split())
