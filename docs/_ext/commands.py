"""The reference of the command line, written from the commands themselves before every build."""

from __future__ import annotations

from pathlib import Path

import typer
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from conche.cli import run  # noqa: F401  # hangs every command on the app
from conche.cli.app import app as conche


def text() -> str:
    """All commands with their arguments and options, as Markdown."""
    command = typer.main.get_command(conche)
    found = get_docs_for_click(obj=command, ctx=typer.Context(command), name="conche")
    return "# The command line\n" + found.partition("\n")[2]


def write(app: Sphinx) -> None:
    """Write the page, where it has changed."""
    page = Path(app.srcdir) / "commands.md"
    new = text()
    if not page.exists() or page.read_text() != new:
        page.write_text(new)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
