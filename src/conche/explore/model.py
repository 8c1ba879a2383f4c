"""A trained model as plain data: what the page and the reports show of it."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ..common.plain import defined
from ..common.version import __version__
from ..estimators.base import LinearModel
from ..evaluation import Evaluation, mean_of
from ..model_file import Run
from .known import known_of
from .spectrum import spectrum_of
from .tables import model_tables

MOST_ROUNDS = 2000  # records of rounds that are shown
MOST_NAMES = 200  # of a node's columns
PACKAGES = ("numpy", "scipy", "scikit-learn")
NO_MATRIX = (
    "The error matrix needs test tasks: conche evaluate {file} STREAM --target COLUMN --report "
    "report.html, or conche explore {file} --stream STREAM."
)
NO_MATRIX_HERE = (
    "Errors on test tasks need the nodes, which have the weights: conche evaluate {file} "
    "STREAM.toml --report report.html, or conche explore {file} --stream STREAM.toml."
)


def description(
    model: LinearModel,
    run: Run | None,
    file: Path,
    *,
    seconds: Sequence[float] = (),
    found: Evaluation | None = None,
    explored: Sequence[str] = (),
    name: str = "",
    on: str = "test",
) -> dict[str, Any]:
    """Everything there is to show of a model, as JSON has it.

    Parameters
    ----------
    model, run : as `conche.model_file.load_run` gives them.
    file : which they are from.
    seconds : that the tasks took, where they are known.
    found : how well it does on test tasks, if that was looked at.
    explored : what ``conche explore`` was given, for the command that prints a figure's numbers;
        the file unless given.
    name : of the file, as it is shown; its own unless given.
    on : which tasks ``found`` is about: test, or training.
    """
    known = known_of(model, run, file, seconds)
    known["file"] = name or file.name
    names = model.state_.schema.names
    for node, own in zip(known["nodes"], model.partition_, strict=True):
        node["names"] = [] if names is None else [str(names[j]) for j in own[:MOST_NAMES]]
        node.pop("some")
    history = model.history_
    of_task: dict[int, int] = {}
    for record in history:
        of_task[record["task"]] = max(of_task.get(record["task"], 0), record["round"])
    for task in known["history"]:
        task["rounds"] = of_task.get(task["task"], 0)
        task.setdefault("name", str(task["task"]))
    rounds = history[-MOST_ROUNDS:]
    known["rounds"] = [
        {key: record[key] for key in ("task", "round", "residual", "loss", "bytes")}
        for record in rounds
    ]
    known["spectrum"] = spectrum_of(model)
    known["matrix"] = None if found is None else matrix_of(found, on)
    known["at_home"] = known.pop("homes") is not None  # where that is concerns nobody else
    del known["home_files"]
    without = (NO_MATRIX_HERE if known["at_home"] else NO_MATRIX).format(
        file=shlex.quote(known["file"])
    )
    known["without"] = without if found is None else None
    known["error"] = "error rate" if known["classes"] is not None else "mean squared error"
    looked = shlex.join(["conche", "explore", *(explored or [known["file"]])])
    known["command"] = looked
    known["versions"] = versions()
    plain: dict[str, Any] = defined(known)
    plain["figures"] = {
        figure: {**table._asdict(), "command": f"{looked} --csv {figure}"}
        for figure, table in model_tables(plain).items()
    }
    return plain


def matrix_of(found: Evaluation, on: str = "test") -> dict[str, Any]:
    """The error matrix, and what it comes to; ``on`` test or training tasks."""
    values = found.values
    square = len(values) > 1 and values.shape[0] == values.shape[1]
    worse = -found.metric.better * values
    since = np.tril(np.ones(values.shape, dtype=bool))
    changes = np.where(since, worse - np.diag(worse), np.nan) if square else None
    rows = found.learnt if any(found.learnt) else [str(i + 1) for i in range(len(values))]
    return {
        "on": on,
        "metric": found.metric.title,
        "rate": found.metric.rate,
        "better": found.metric.better,
        "tasks": found.tasks,
        "learnt": rows if len(rows) > 1 else ["all tasks"],
        "values": values,
        "changes": changes,
        "average": found.average,
        "forgetting": found.forgetting,
        "seen": [mean_of(row[: i + 1]) for i, row in enumerate(values)] if square else None,
        "all": [mean_of(row) for row in values],
        "beside": {method: mean_of(values) for method, values in found.yardsticks.items()},
    }


def versions() -> dict[str, str]:
    """Of what the numbers were made with."""
    known = {"conche": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            continue
    return known
