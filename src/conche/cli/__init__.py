"""The command line: thin."""

from __future__ import annotations

import sys

from ..common.extras import need
from ..errors import MissingExtraError


def main() -> None:
    """Run the command line; where typer or rich is not installed, one line says what to install."""
    try:
        for package in ("typer", "rich"):
            need(package, "cli", "the command line")
        from .run import run
    except (MissingExtraError, KeyboardInterrupt) as error:
        print(f"conche: {str(error) or 'interrupted'}", file=sys.stderr)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 2)
    run(sys.argv[1:])
