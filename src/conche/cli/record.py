"""What a run was asked for, in a small TOML file beside its model: to read, and to run again.

The model itself has no times in it, so that the same stream gives the same bytes; they are here.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..common.atomic import write_atomically
from ..common.version import __version__
from ..errors import ParameterError

UNSAID = ("config", "resume", "quiet", "json", "wide", "report")  # of one call, not of the run


def beside(model: Path) -> Path:
    """Where the record of a model is."""
    return model.with_name(f"{model.name}.toml")


def write_record(options: Any, seconds: list[float]) -> None:
    """Every option that the run had, and the seconds that its tasks took."""
    lines = [
        f"# conche {__version__}: conche train --config {beside(options.out).name} runs it again"
    ]
    for each in fields(options):
        value = getattr(options, each.name)
        if value is not None and each.name not in UNSAID:
            value = value if isinstance(value, bool | int | float) else str(value)
            lines.append(f"{each.name.replace('_', '-')} = {json.dumps(value, ensure_ascii=False)}")
    took = ", ".join(f"{each:.3f}" for each in seconds)
    lines += ["", "[learnt]", f"seconds = [{took}]  # a task", ""]
    write_atomically(beside(options.out), "\n".join(lines).encode())


def read_record(path: Path, known: type[Any]) -> dict[str, Any]:
    """The options in a TOML file, by the names of the dataclass ``known``."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # of TOML, or of the text's coding
        raise ParameterError(f"{path}: is not TOML ({error})") from None
    found.pop("learnt", None)
    names = {each.name for each in fields(known)} - {*UNSAID}
    options = {key.replace("-", "_"): value for key, value in found.items()}
    for key, value in options.items():
        if key not in names:
            listed = ", ".join(sorted(name.replace("_", "-") for name in names))
            raise ParameterError(
                f"{path}: {key.replace('_', '-')!r} is no option; there are {listed}"
            )
        if isinstance(value, dict | list):
            raise ParameterError(f"{path}: {key.replace('_', '-')} must be one value")
    return options


def seconds_of(model: Path) -> list[float]:
    """What the tasks of a model took, as far as its record says."""
    try:
        took = tomllib.loads(beside(model).read_text(encoding="utf-8"))["learnt"]["seconds"]
        return [float(each) for each in took]
    except (OSError, ValueError, TypeError, LookupError):
        return []
