"""``conche train``: files in, a model out."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.launch import launched_rank
from ...errors import ParameterError
from ..options import (
    CATEGORIES,
    DATES,
    PLAIN_KEYS,
    ROWS,
    SEPARATOR,
    TARGET,
    TASK_COLUMN,
    WIDE,
    argument,
    command,
    flag,
    listed,
    option,
    reading_of,
    refuse_for_nodes,
    refuse_said,
    required,
    target_of,
)

if TYPE_CHECKING:
    from ...estimators.base import LinearModel
    from ...model_file import Run
    from ...training import Stream

SOLVER_OPTIONS = ("local_steps", "damping", "rank", "ridge", "discount", "alpha", "l1_ratio")


@dataclass(frozen=True, kw_only=True)
class Train:
    """Options of ``conche train``."""

    stream: str = argument("Folder or glob: one file per task, name order. Or a .toml file.")
    target: str | None = option(TARGET)
    out: Path = required("Write the model here.")
    nodes: int | None = option("Number of nodes; columns split evenly.")
    groups: Path | None = option("JSON or TOML: nodes, and the columns each of them holds.")
    task_column: str | None = option(TASK_COLUMN)
    weight: str | None = option("Column that says what each sample counts for.")
    features: str | None = option("Only these columns (names or patterns, comma-separated).")
    drop: str | None = option("All columns but these.")
    categories: str | None = option(CATEGORIES)
    dates: str | None = option(DATES)
    separator: str = option(SEPARATOR, ",")
    solver: str = option(
        "memory: does not forget; elastic-net: nor does it, and most weights are zero. damped, "
        "exact: Algorithm 1.",
        "memory",
    )
    rank: int | None = option(
        "Directions (memory) or columns (elastic-net) of the past that are kept; up to so many "
        "columns, all of it."
    )
    ridge: float | None = option(
        "Strength of the ridge (memory): used as given; by evidence, unless it is."
    )
    damping: float | None = option("Strength of the brake (damped).")
    discount: str | None = option("Weight of the past per task: a number, or auto (memory).")
    local_steps: str | None = option(
        "Steps inside a node, instead of factorising its block: a number, or auto (exact, damped)."
    )
    alpha: str | None = option(
        "Strength of the penalty: a number, or auto (elastic-net), the default."
    )
    l1_ratio: float | None = option("Share of the L1 penalty (elastic-net); 0.5.")
    rounds: int | None = option("Rounds a task: at most 30 (memory, elastic-net), or 1.")
    steps: str | None = option("safe (1/K), adaptive, or cg, the default of memory.")
    tol: float | None = option(
        "End a task's rounds at this relative distance; 1e-6 (memory, elastic-net)."
    )
    classify: bool = flag("--classify", "The target is a label (text always is).")
    classes: str | None = option("Labels that are known to come; others may, too.")
    class_weight: str | None = option("balanced: rare labels count for more.")
    loss: str | None = option("With labels: squared (unless given) or logistic.")
    scaling: str = option(
        "Standardise columns: standard (by all rows, where memory has all), first, running, none.",
        "standard",
    )
    missing: str = option("refuse, or mean: fill missing values with their column's.", "refuse")
    rows: str = option(ROWS, "all")
    plain_keys: bool = flag("--plain-keys", PLAIN_KEYS)
    intercept: bool = option("Add a constant to the first node.", True)
    network: str = option(
        "local; mpi (start with mpiexec); ray; ring, grid, complete, regular.", "local"
    )
    lost: float = option("Fraction of messages lost between neighbours (ring, ...).", 0.0)
    timeout: float | None = option("Seconds to wait for a worker: 600 (mpi), 300 (ray).")
    workers: int | None = option("Workers that share the nodes (ray); one a node unless given.")
    secure: bool = flag("--secure", "Sums that show no single worker's part (docs/security.md).")
    device: str | None = option("cpu, or cuda: learn on a GPU (docs/gpu.md).")
    seed: int = option("Of all that is random.", 0)
    checkpoint: Path | None = option("Write the model here after every task.")
    resume: bool = flag("--resume", "Go on from the checkpoint, if there is one.")
    config: Path | None = option("Read options from this TOML file; those given here win.")
    json: bool = flag("--json", "Print one JSON object, and nothing else.")
    quiet: bool = flag("--quiet", "Print nothing but warnings and errors.")
    wide: bool = flag("--wide", WIDE)
    report: Path | None = option("Write a page with figures and tables, in one HTML file.")


@command(Train)
def train(options: Train) -> None:
    """Learn a stream of task files: Parquet, CSV, npz, sparse npz or svmlight.

    conche train months/ --target pm25 --nodes 12 --checkpoint state/ --out model.conche

    Every node reads its own columns; with a .toml file for STREAM, files of its own on its own
    machine (docs/parties.md). With --checkpoint, a run that was stopped at any moment goes
    on with --resume, and ends with the same model to the last bit. All options of the run are
    written to model.conche.toml, and conche train --config model.conche.toml runs it again.
    """
    from ... import training
    from ...common.device import find_device
    from ..reports import outputs, streams
    from ..rescue import Rescue, partial
    from ..stops import terminable

    network = _network(options)
    stream = _stream(options, network)
    y = stream.task(0).y
    labels = _are_labels(options, y)
    classes = None if options.classes is None else _labels(options.classes, y)
    stream.check()
    if options.network == "local":  # elsewhere nodes have devices of their own
        find_device(options.device)
    silent = options.json or options.quiet
    if not silent:
        streams.hints(stream, y, labels)
    parameters = _parameters(options, stream, network)
    model = training.make_model(options.solver, labels, _solver_options(options), **parameters)
    place = options.checkpoint
    if place is None and options.resume and partial(options.out).exists():
        model, run = training.resumed(model, partial(options.out), stream, classes)
    else:
        model, run = training.begin(model, stream, place, options.resume, classes)
    outputs.check_writable(options.out)
    if options.report is not None:
        outputs.check_writable(options.report, outputs.PAGES)
    training.check_settings(model, stream)
    safe = Rescue(model, options.out, options.checkpoint, run, stream)
    table = streams.Learning(stream.names, len(run.tasks), labels, options.wide, silent)
    with terminable(), safe, table.shown() as report:
        for so_far in training.learning(
            model, stream, run=run, classes=classes, checkpoint=options.checkpoint, report=report
        ):
            safe.reached(model, so_far)
        training.finish(model, stream, run=safe.run, out=options.out, checkpoint=place)
    safe.forget()
    _tell(options, model, safe.run, stream)


def _tell(options: Train, model: LinearModel, run: Run, stream: Stream) -> None:
    """What was learnt: the record beside the model, the report, and a word on the screen."""
    from ..record import write_record
    from ..reports import models, objects, pages, streams

    if not launched_rank():
        write_record(options, [record["seconds"] for record in model.tasks_])
    if options.report is not None and not launched_rank():
        pages.write_training_page(options.report, model, run, options.out, stream)
    if options.json:
        objects.print_object(models.known_beside(model, run, options.out))
    elif not options.quiet:
        streams.trained(model, options.out, stream.lacked)
        if options.report is not None:
            print(f"report: {options.report}")


def _stream(options: Train, network: Any) -> Stream:
    """The stream that is asked for, from one folder or from the files of every node."""
    from ...node_stream import NodeStream
    from ...tasks import FileStream
    from ...tasks.stream_file import is_description

    missing = "refuse" if options.missing == "refuse" else "keep"
    if is_description(options.stream):
        said = ("target", "nodes", "groups", "task_column", "weight", "features", "drop")
        refuse_said(options, (*said, "categories", "dates"))
        if options.separator != ",":
            raise ParameterError(f"--separator: {options.stream} says that itself")
        return NodeStream(options.stream, network, missing, options.rows, options.plain_keys)
    refuse_for_nodes(options)
    return FileStream(
        options.stream,
        target_of(options),
        options.task_column,
        listed(options.features),
        listed(options.drop) or [],
        missing,
        weight=options.weight,
        reading=reading_of(options),
    )


def _are_labels(options: Train, y: Any) -> bool:
    """Whether the target is a label; options that are for labels alone are refused otherwise."""
    labels = bool(options.classify or y.dtype.kind == "U")
    for_labels = {
        "--loss": options.loss,
        "--classes": options.classes,
        "--class-weight": options.class_weight,
    }
    for name, given in for_labels.items():
        if given is not None and not labels:
            raise ParameterError(f"{name} is for labels: the target has numbers (--classify?)")
    return labels


def _blocks(options: Train, stream: Stream) -> list[list[str]] | None:
    """Which node holds which columns; None: an even split."""
    from ...tasks import FileStream, read_groups

    if not isinstance(stream, FileStream):
        return stream.partition
    if options.groups is not None and options.nodes is not None:
        raise ParameterError("--nodes or --groups, not both")
    if options.groups is not None:
        return list(read_groups(options.groups, stream.columns, stream.meant).values())
    if options.nodes is not None and stream.has_parts:
        return stream.blocks(options.nodes)
    return None


def _parameters(options: Train, stream: Stream, network: Any) -> dict[str, Any]:
    """The estimator's parameters beside the solver; None keeps its own default."""
    blocks = _blocks(options, stream)
    return {
        "n_nodes": options.nodes if blocks is None else None,
        "partition": blocks,
        "n_rounds": options.rounds,
        "steps": options.steps,
        "tol": options.tol,
        "network": getattr(stream, "network", network),
        "fit_intercept": options.intercept,
        "scaling": None if options.scaling == "none" else options.scaling,
        "missing": options.missing,
        "loss": options.loss,
        "class_weight": options.class_weight,
        "device": options.device,
        "seed": options.seed,
    }


def _solver_options(options: Train) -> dict[str, Any]:
    """Those of the solver that were given; one that it does not have is refused."""
    from ...common.checks import one_of
    from ...nodes.solvers import SOLVERS

    own = signature(SOLVERS[one_of("solver", options.solver, SOLVERS)]).parameters
    given = {name: getattr(options, name) for name in SOLVER_OPTIONS}
    for name in ("discount", "alpha"):
        given[name] = _number_or_auto(name, given[name], float)
    given["local_steps"] = _number_or_auto("local_steps", options.local_steps, int)
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in own:
            known = ", ".join(map(_dashed, own))
            raise ParameterError(
                f"{_dashed(name)} is no option of --solver {options.solver}, which has {known}"
            )
    return given


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number_or_auto(
    name: str, text: str | None, kind: type[int] | type[float]
) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise ParameterError(f"{_dashed(name)} {text} must be {number} or auto") from None


def _network(options: Train) -> Any:
    from ...network.graph import KINDS, Graph

    name, timeout = options.network, options.timeout
    if options.lost and name not in KINDS:
        raise ParameterError(f"--lost is for {', '.join(KINDS)}, not --network {name}")
    if timeout is not None and name not in ("mpi", "ray"):
        raise ParameterError(f"--timeout is for mpi and ray, not --network {name}")
    if options.workers is not None and name != "ray":
        more = ": mpiexec says how many ranks there are" if name == "mpi" else ""
        raise ParameterError(f"--workers is for ray, not --network {name}{more}")
    if options.secure and name not in ("mpi", "ray"):
        raise ParameterError(f"--secure is for mpi and ray, not --network {name}")
    if name in KINDS:
        return Graph(name, options.lost)
    if name == "mpi":
        from ...network.mpi import MPINetwork

        return MPINetwork(timeout=timeout or 600.0, secure=options.secure)
    if name == "ray":
        from ...network.ray import RayNetwork

        waits = timeout or 300.0
        return RayNetwork(timeout=waits, workers=options.workers, secure=options.secure)
    return name


def _labels(text: str, y: Any) -> list[Any]:
    """Labels as the target has them: texts or numbers."""
    parts = listed(text) or []
    if y.dtype.kind == "U":
        return parts
    if y.dtype.kind == "b" and set(parts) <= {"True", "False", "true", "false"}:
        return [part in ("True", "true") for part in parts]
    try:
        labels = [float(part) for part in parts]
    except ValueError:
        raise ParameterError(f"--classes {text}: the target has numbers") from None
    if y.dtype.kind in "iu" and any(label != int(label) for label in labels):
        raise ParameterError(f"--classes {text}: the target has whole numbers")
    return [label if y.dtype.kind == "f" else int(label) for label in labels]
