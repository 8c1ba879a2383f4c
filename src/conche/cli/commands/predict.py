"""``conche predict``: a model and a file in, predictions out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..options import argument, command, option


@dataclass(frozen=True, kw_only=True)
class Predict:
    """Options of ``conche predict``."""

    model: Path = argument("A model that conche train wrote.")
    file: Path = argument("Parquet, CSV or npz with the model's columns.")
    out: Path | None = option("Write .csv or .parquet here; else CSV to the screen.")


@command(Predict)
def predict(options: Predict) -> None:
    """Predict for the rows of a file; columns are matched by name."""
    from ... import evaluation
    from ...model_file import load
    from .. import reports

    if options.out is not None:
        reports.check_writable(options.out, (".csv", ".parquet"))
    model = load(options.model)
    values, probabilities = evaluation.predict(model, options.file)
    reports.write_predictions(values, probabilities, model, options.out)
