"""Everything that a model's file says of itself, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..estimators.base import LinearModel
from ..model_file import Run
from ..nodes import NodeState
from ..nodes.home import Home, token_of


def known_of(
    model: LinearModel, run: Run | None, file: Path, seconds: Sequence[float] = ()
) -> dict[str, Any]:
    """A model and what it was trained on.

    Parameters
    ----------
    model, run : as `conche.model_file.load_run` gives them.
    file : which they are from.
    seconds : that the tasks took; a file that ``conche train`` wrote has none.
    """
    defaults = type(model)().get_params(deep=False)
    given = {k: v for k, v in model.get_params(deep=False).items() if v != defaults.get(k)}
    given.pop("network", None)
    partition, schema = model.partition_, model.state_.schema
    states = model.node_states()
    past = model.state_.past
    kept = sum(array.nbytes for node in states for array in node.to_arrays().values())
    if past is not None:  # weights follow from it
        kept = 8 * sum(path.sums.numbers for path in past.paths)
    names = schema.names
    nodes = [
        {"columns": len(own), "some": [] if names is None else [names[j] for j in own[:3]]}
        for own in partition
    ]
    tasks = [dict(record) for record in model.tasks_]
    for record, name in zip(tasks, run.tasks if run is not None else (), strict=False):
        record["name"] = name
    for record, took in zip(tasks, seconds, strict=False):
        record["seconds"] = took
    classes = model.state_.classes
    return {
        "file": str(file),
        "class": type(model).__name__,
        "target": None if run is None else run.target,
        "tasks": len(tasks),
        "samples": sum(record["samples"] for record in tasks),
        "columns": schema.n_features,
        "classes": None if classes is None else classes.tolist(),
        "ridge": model.told_ridge(),
        "options": {name: str(value) for name, value in given.items()},
        "nodes": nodes,
        "homes": [home.folder for home in schema.homes] or None,
        "home_files": _home_files(schema.homes, states),
        "file_bytes": file.stat().st_size,
        "kept_bytes": kept,
        "history": tasks,
    }


def _home_files(homes: Sequence[Home], states: Sequence[NodeState]) -> list[str] | None:
    """Where the nodes keep what the model needs, each on its own machine; None: it has all."""
    pairs = zip(homes, states, strict=False)
    found = [str(home.file(token)) for home, node in pairs if (token := token_of(node))]
    return list(dict.fromkeys(found)) or None
