"""Commands for streams on disk: train, predict, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app

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
        str,
        typer.Option(help="memory: does not forget. damped, exact: Algorithm 1. sparse: L1."),
    ] = "memory",
    rounds: Annotated[int | None, typer.Option(help="Rounds a task; 10 (memory) or 1.")] = None,
    acceleration: Annotated[
        str | None, typer.Option(help="cg or none; cg is the default of memory.")
    ] = None,
    aggregation: Annotated[
        str | None, typer.Option(help="Steps of plain rounds: safe (1/K) or adaptive.")
    ] = None,
    local_steps: Annotated[
        int | None, typer.Option(help="Steps inside a node, instead of factorising its block.")
    ] = None,
    tol: Annotated[
        float | None, typer.Option(help="End a task's rounds at this relative distance.")
    ] = None,
    damping: Annotated[
        str | None, typer.Option(help="A number, or auto; for sparse, its alpha.")
    ] = None,
    l1_ratio: Annotated[
        float | None, typer.Option(help="Share of the L1 penalty (sparse); 0.5.")
    ] = None,
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
        str,
        typer.Option(help="local; mpi (start with mpiexec); ray; ring, grid, complete, regular."),
    ] = "local",
    lost: Annotated[
        float, typer.Option(help="Fraction of messages lost between neighbours (ring, ...).")
    ] = 0.0,
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
    from .. import reports, training
    from ..checkpoint import save
    from ..tasks import FileStream, read_groups

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
        "damping": _damping(damping), "seed": seed, "network": _network(network, lost),
        "aggregation": aggregation, "local_steps": local_steps, "tol": tol, "l1_ratio": l1_ratio,
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
    save(model, out, timings=False)  # so that the same stream gives the same bytes
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
    from .. import reports, training
    from ..checkpoint import load

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
    from .. import reports, training
    from ..checkpoint import load
    from ..tasks import FileStream

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


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _network(name: str, lost: float) -> Any:
    from ..network.graph import KINDS, Graph

    if name in KINDS:
        return Graph(name, lost)
    if lost:
        raise ValueError(f"--lost is for {', '.join(KINDS)}, not --network {name}")
    return name


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
