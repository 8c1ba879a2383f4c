"""``conche plan``: how many nodes, how much memory, before anything is trained."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ParameterError
from ..options import (
    CATEGORIES,
    DATES,
    JSON,
    SEPARATOR,
    command,
    flag,
    listed,
    option,
    reading_of,
)

if TYPE_CHECKING:
    from ...planner import Plan as Advice

NUMBERS = {  # options and the parameters of conche.plan that they are
    "features": "n_features",
    "samples": "n_samples",
    "tasks": "n_tasks",
    "shared": "n_shared",
    "noise": "noise_var",
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Options of ``conche plan``."""

    features: int | None = option("Columns in all (p).")
    samples: int | None = option("Samples of a task (n_t).")
    tasks: int | None = option("Number of tasks (T).")
    shared: float | None = option("Unknowns that all tasks have in common (p_S).")
    noise: float | None = option("Noise variance (sigma^2).")
    energy: float | None = option("Signal energy, |w*|^2; 1 unless given.")
    drift: float | None = option("Squared step of all unknowns from task to task; 0 unless given.")
    data: str | None = option("Estimate all of that from a folder or glob of task files instead.")
    target: str = option("With --data: the target's column.", "y")
    drop: str | None = option("With --data: all columns but these.")
    missing: str = option("With --data: refuse, or mean to fill missing values.", "refuse")
    categories: str | None = option(f"With --data: {CATEGORIES}")
    dates: str | None = option(f"With --data: {DATES}")
    separator: str = option(SEPARATOR, ",")
    nodes: int | None = option("The number of nodes is given: look for remedies.")
    nodes_max: int | None = option("No more nodes than this.")
    rank: int | None = option("Conche method: directions of the past to keep.")
    loss: float = option("What a smaller rank may cost, as a share of the error.", 0.01)
    network: str = option("What carries the messages: local, ray or mpi.", "local")
    bandwidth: float | None = option("Of the network, in MB/s; else as measured on one machine.")
    latency: float | None = option("Until a node has answered, in ms; else as measured.")
    json: bool = flag("--json", JSON)
    plot: Path | None = option("Draw the error against nodes here.")


@command(Plan)
def plan(options: Plan) -> None:
    """How many nodes, how much memory? Foresee errors, bytes and seconds before training.

    For Algorithm 1 (the paper's) and for the Conche method (what conche train does).

    From numbers:  conche plan --features 1024 --samples 2048 --tasks 16 --shared 768 --noise 0.01

    From data:     conche plan --data months/ --target pm25
    """
    from ..reports import outputs, plans

    if options.plot is not None:
        outputs.check_writable(options.plot, outputs.FORMATS)
    advice = _from_numbers(options) if options.data is None else _from_data(options, options.data)
    if options.json:
        plans.print_json(advice)
    else:
        plans.print_plan(advice)
    if options.plot is not None:  # last: a full disk must not cost the table
        plans.draw_plan(advice, options.plot)
        if not options.json:
            print(f"error against nodes: {options.plot}")


def _from_numbers(options: Plan) -> Advice:
    from ... import planner
    from ..reports import outputs

    given: dict[str, Any] = {to: getattr(options, name) for name, to in NUMBERS.items()}
    for name, to in NUMBERS.items():
        if given[to] is None:
            raise ParameterError(f"--{name} is missing (or give --data)")
    for name in ("energy", "drift"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    with outputs.waiting("planning"):
        return planner.plan(**given, **_terms(options))


def _terms(options: Plan) -> dict[str, Any]:
    """What may be said beside the question."""
    return {
        "n_nodes": options.nodes,
        "n_nodes_max": options.nodes_max,
        "rank": options.rank,
        "loss": options.loss,
        "network": options.network,
        "bandwidth": options.bandwidth,
        "latency": options.latency,
    }


def _from_data(options: Plan, data: str) -> Advice:
    from ... import planner
    from ...common.checks import one_of
    from ...nodes.scaling import MISSING
    from ...tasks import DenseTasks
    from ..reports import outputs

    for name in (*NUMBERS, "energy", "drift"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} is estimated where --data is given: leave it out")
    one_of("missing", options.missing, MISSING)
    with outputs.waiting("reading and planning"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tasks = DenseTasks(
            data,
            options.target,
            drop=listed(options.drop) or [],
            missing="refuse" if options.missing == "refuse" else "keep",
            reading=reading_of(options),
        )
        advice = planner.plan_from_tasks(tasks, **_terms(options))
    for warning in said:  # now that the spinner is out of the way
        warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
    return advice
