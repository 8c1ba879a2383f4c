"""The command line: thin. Exit status 0 done, 1 a check failed, 2 bad usage or bad input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import __version__

app = typer.Typer(
    help="Distributed continual learning with CoCoA.",
    no_args_is_help=True,
    add_completion=False,
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
) -> None: ...


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("demo"),
) -> None:
    """Learn two streams and compare Algorithm 1, Conche and offline. Takes under a minute."""
    from . import demo as demonstration

    demonstration.main(out)


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit status 2."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"conche: {error}", file=sys.stderr)
        sys.exit(2)
