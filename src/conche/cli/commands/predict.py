"""``conche predict``: a model and files in, predictions out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import ParameterError
from ..options import (
    NETWORK,
    PLAIN_KEYS,
    ROWS,
    SEPARATOR,
    argument,
    command,
    flag,
    listed,
    option,
    refuse_for_nodes,
    separator,
)


@dataclass(frozen=True, kw_only=True)
class Predict:
    """Options of ``conche predict``."""

    model: Path = argument("A model that conche train wrote.")
    file: str = argument(
        "A file with the model's columns, a folder or glob; - is CSV from standard input. Or a "
        ".toml file, whose nodes have them."
    )
    keep: str | None = option("Copy these columns (an id, comma-separated) beside the predictions.")
    separator: str = option(SEPARATOR, ",")
    tasks: str | None = option("Of a .toml stream: only these tasks (comma-separated).")
    network: str = option(NETWORK, "local")
    rows: str = option(ROWS, "all")
    plain_keys: bool = flag("--plain-keys", PLAIN_KEYS)
    out: Path | None = option("Write .csv or .parquet here; else CSV to the screen.")
    force: bool = flag("--force", "Overwrite --out if it is there.")


@command(Predict)
def predict(options: Predict) -> None:
    """Predict for the rows of files; columns are matched by name.

    conche predict model.conche tomorrow.csv --keep id --out predictions.csv

    zcat big.csv.gz | conche predict model.conche - > predictions.csv
    """
    from ... import evaluation
    from ...model_file import load_run
    from ...tasks import Reading
    from ...tasks.stream_file import is_description
    from ..reports import outputs, streams

    if options.out is not None:
        outputs.check_writable(options.out, (".csv", ".parquet"))
        if options.out.exists() and not options.force:
            raise ParameterError(f"{options.out}: is there already; --force overwrites it")
    if is_description(options.file):
        _predict_there(options)
        return
    refuse_for_nodes(options)
    model, _ = load_run(options.model)
    keep, reading = listed(options.keep) or [], Reading(separator(options.separator))
    found = [evaluation.predict(model, file, keep, reading) for file in _files(options.file)]
    streams.write_predictions(found, model, options.out)


def _predict_there(options: Predict) -> None:
    """Every node answers its share, and the rows have their key beside them."""
    from ... import evaluation
    from ...model_file import load_run
    from ...node_stream import NodeStream
    from ..reports import outputs, streams

    if options.keep is not None:
        raise ParameterError("--keep: the key is beside the predictions of a .toml file by itself")
    network, rows = options.network, options.rows
    stream = NodeStream(options.file, network, rows=rows, plain_keys=options.plain_keys)
    model, _ = load_run(options.model, stream.network)
    stream.for_prediction(listed(options.tasks)).of_model(model)
    with outputs.waiting("predicting"):
        found = evaluation.predict_there(model, stream)
    if stream.network.writes_files():
        streams.write_predictions(found, model, options.out)


def _files(asked: str) -> list[Path | None]:
    """The files to predict for; None is standard input."""
    from ...tasks.folders import stream_files

    if asked == "-":
        return [None]
    path = Path(asked)
    pattern = any(sign in asked for sign in "*?[") and not path.exists()
    return [*stream_files(asked)] if path.is_dir() or pattern else [path]
