"""The command line's root, on which every command hangs."""

from __future__ import annotations

from typing import Annotated

import typer

from ..common.version import __version__

app = typer.Typer(
    help="Distributed continual learning with CoCoA.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"conche {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (after any command).")
    ] = False,
) -> None:
    """What is common to all commands; `run` has taken --debug out before typer sees it."""
