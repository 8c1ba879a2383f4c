"""``conche plan``: how many nodes, before anything is trained."""

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
    from ...paper.planner import Plan as Advice

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
    data: str | None = option("Estimate all of that from a folder or glob of task files instead.")
    target: str = option("With --data: the target's column.", "y")
    drop: str | None = option("With --data: all columns but these.")
    missing: str = option("With --data: refuse, or mean to fill missing values.", "refuse")
    categories: str | None = option(f"With --data: {CATEGORIES}")
    dates: str | None = option(f"With --data: {DATES}")
    separator: str = option(SEPARATOR, ",")
    nodes: int | None = option("The number of nodes is given: look for remedies.")
    nodes_max: int | None = option("No more nodes than this.")
    json: bool = flag("--json", JSON)
    plot: Path | None = option("Draw the error against nodes here.")


@command(Plan)
def plan(options: Plan) -> None:
    """How many nodes? Predict the error of Algorithm 1 without training, and advise.

    From numbers:  conche plan --features 1024 --samples 2048 --tasks 16 --shared 768 --noise 0.01

    From data:     conche plan --data months/ --target pm25
    """
    from .. import reports

    if options.plot is not None:
        reports.check_writable(options.plot, reports.FORMATS)
    advice = _from_numbers(options) if options.data is None else _from_data(options, options.data)
    if options.json:
        reports.print_json(advice)
    else:
        reports.print_plan(advice)
    if options.plot is not None:  # last: a full disk must not cost the table
        reports.draw_plan(advice, options.plot)
        if not options.json:
            print(f"error against nodes: {options.plot}")


def _from_numbers(options: Plan) -> Advice:
    from ...paper import planner
    from .. import reports

    given: dict[str, Any] = {to: getattr(options, name) for name, to in NUMBERS.items()}
    for name, to in NUMBERS.items():
        if given[to] is None:
            raise ParameterError(f"--{name} is missing (or give --data)")
    if options.energy is not None:
        given["energy"] = options.energy
    with reports.waiting("planning"):
        return planner.plan(**given, n_nodes=options.nodes, n_nodes_max=options.nodes_max)


def _from_data(options: Plan, data: str) -> Advice:
    from ...common.checks import one_of
    from ...nodes.scaling import MISSING
    from ...paper import planner
    from ...tasks import read_stream
    from .. import reports

    for name in (*NUMBERS, "energy"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} is estimated where --data is given: leave it out")
    one_of("missing", options.missing, MISSING)
    with reports.waiting("reading and planning"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tasks = read_stream(
            data,
            options.target,
            drop=listed(options.drop) or [],
            missing="refuse" if options.missing == "refuse" else "keep",
            reading=reading_of(options),
        )
        advice = planner.plan_from_tasks(tasks, options.nodes, options.nodes_max)
    for warning in said:  # now that the spinner is out of the way
        warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
    return advice
