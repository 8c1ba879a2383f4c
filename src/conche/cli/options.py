"""A command's options as one frozen dataclass, from which typer reads the command's parameters.

A field is one line: its type, and `option`, `flag` or `argument` with the help that users see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from ..errors import ParameterError
from .app import app

O = TypeVar("O")  # noqa: E741  # the options
Command = Callable[[O], int | None]


def option(help: str, default: Any = None) -> Any:
    """An option ``--name VALUE``; of a bool, ``--name`` or ``--no-name``."""
    return field(default=default, metadata={"typer": typer.Option(help=help)})


def required(help: str) -> Any:
    """An option that must be given."""
    return option(help, MISSING)


def flag(name: str, help: str) -> Any:
    """An option without a value: off unless it is there."""
    return field(default=False, metadata={"typer": typer.Option(name, help=help)})


def argument(help: str, default: Any = MISSING) -> Any:
    """What is given by its place; required unless there is a default."""
    return field(default=default, metadata={"typer": typer.Argument(help=help)})


TARGET = "The target's column; a .toml file says it itself."
TASK_COLUMN = "STREAM is one table; this column says which task a row is of."
JSON = "Print one JSON object."
WIDE = "Tables as wide and long as they are, whole names included."
CATEGORIES = "Text columns whose every value becomes a column: names, patterns, or all."
DATES = "number: dates as days; calendar: as year, month, day, weekday, hour."
NETWORK = "Of a .toml stream: local; mpi (start with mpiexec); ray."
ROWS = "Of a .toml stream: all rows of the target, or the common ones of all nodes."
PLAIN_KEYS = "Of a .toml stream: keys travel as they are, and not as salted hashes."
SEPARATOR = "Between the values of CSV files; tab or \\t for tabs."


def separator(text: str) -> str:
    """The character that is meant."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


def listed(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def reading_of(options: Any) -> Any:
    """How files are read, for a command with --separator, --categories and --dates."""
    from ..tasks import Reading

    names = ["*"] if options.categories == "all" else listed(options.categories) or []
    return Reading(separator(options.separator), tuple(names), options.dates)


def target_of(options: Any) -> str:
    """The target's column, which a stream of one folder cannot do without."""
    if options.target is None:
        raise ParameterError("Missing option '--target'.")
    return str(options.target)


def refuse_said(options: Any, names: Sequence[str]) -> None:
    """Options that a TOML file says itself."""
    for name in names:
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name.replace('_', '-')}: {options.stream} says that itself")


def refuse_for_nodes(options: Any) -> None:
    """Options that are for a TOML file alone."""
    if getattr(options, "network", "local") != "local" and not hasattr(options, "solver"):
        raise ParameterError(f"--network {options.network} is for a .toml file")
    if options.rows != "all" or options.plain_keys:
        name = "--plain-keys" if options.plain_keys else f"--rows {options.rows}"
        raise ParameterError(f"{name} is for a .toml file, whose nodes match rows by a key")


def command(options: type[O], app: typer.Typer = app) -> Callable[[Command[O]], Command[O]]:
    """Hang a command on the app: its parameters are the fields of the dataclass ``options``.

    typer makes an option of every parameter of a function, so it gets a function with a parameter
    for each field. That function only answers with the call that is to be made: `run` makes it,
    outside of typer, which would catch some of its errors.
    """
    hints = get_type_hints(options)
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=Annotated[hints[each.name], each.metadata["typer"]],
        )
        for each in fields(options)  # type: ignore[arg-type]  # a dataclass, as every caller's is
    ]

    def hang(work: Command[O]) -> Command[O]:
        def parsed(**values: Any) -> partial[int | None]:
            return partial(work, options(**values))

        parsed.__doc__ = work.__doc__
        parsed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        app.command(work.__name__)(parsed)
        return work

    return hang
