"""What may be given to `conche explore`: a model's file, a checkpoint, or a stream to be learnt."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..evaluation import evaluate
from ..model_file import load_run, save
from ..node_stream import NodeStream
from ..tasks import FileStream
from ..tasks.stream_file import is_description
from ..tasks.tables import SUFFIXES
from ..training import CHECKPOINT, Stream, begin, learning, make_model
from .model import description
from .shown import Loading

FEW = 4  # nodes that a stream is learnt on, unless the user says


def model_in(place: str) -> Path | None:
    """The model that is meant; None where it is a stream."""
    path = Path(place)
    if not path.exists() and not any(c in place for c in "*?["):
        raise FileNotFoundError(f"{place}: no such model, folder or stream")
    if path.is_dir() and (path / CHECKPOINT).is_file():
        return path / CHECKPOINT
    table = path.name.lower().endswith((*SUFFIXES, ".toml"))
    return path if path.is_file() and not table else None


def of_model(
    place: str, file: Path, stream: str | None, target: str | None, seconds: Sequence[float]
) -> Loading:
    """A model that is read now; on which tasks it is tested is read when somebody looks."""
    there = None if stream is None or not is_description(stream) else NodeStream(stream)
    model, run = load_run(file, "local" if there is None else there.network)
    explored = [place]
    tests: Stream | None = None
    if there is not None:
        if target is not None:
            raise ParameterError(f"--target: {stream} says it itself")
        tests = there.of_model(model)
        explored += ["--stream", str(stream)]
    elif stream is not None:
        aim = target or (run.target if run is not None else None)
        if aim is None:
            raise ParameterError("--stream needs --target: the model does not say what it predicts")
        missing = "keep" if model.missing == "mean" else "refuse"
        tests = FileStream(stream, aim, missing=missing)
        tests = tests.of_model(getattr(model, "feature_names_in_", None))
        explored += ["--stream", stream, "--target", aim]

    def load() -> dict[str, Any]:
        found = None if tests is None else evaluate(model, run, tests)
        return description(model, run, file, seconds=seconds, found=found, explored=explored)

    return load


def of_stream(place: str, target: str | None, nodes: int | None) -> Loading:
    """A stream of task files: learnt when somebody looks, and tested on its own tasks."""
    if is_description(place):
        raise ParameterError(
            f"{place}: nodes with files of their own; conche train {place} --out model.conche, "
            f"then conche explore model.conche --stream {place}"
        )
    if target is None:
        raise ParameterError(f"--target is missing: which column of {place} is to be predicted?")
    stream = FileStream(place, target, missing="keep")
    stream.check()
    labels = stream.task(0).y.dtype.kind == "U"
    K = min(FEW, len(stream.columns)) if nodes is None else nodes

    def load() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="conche-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page says how far from offline it is
            model = make_model("memory", labels, {}, n_nodes=K, missing="mean", scaling="first")
            model, run = begin(model, stream, None, resume=False)
            for so_far in learning(model, stream, run=run):
                run = so_far
            file = Path(folder) / "model.conche"
            save(model, file, run=run)
            explored = [place, "--target", target, "--nodes", str(K)]
            found = evaluate(model, run, stream)
            name = f"{Path(place).name}, learnt on {K} nodes"
            return description(
                model, run, file, found=found, explored=explored, name=name, on="training"
            )

    return load
