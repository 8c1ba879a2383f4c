"""The tutorials, as a reader would follow them: every block in order, in one folder.

Python goes on with the names of the blocks before it, and prints what a text block after it says.
Of a console block every command is run in a shell, and prints what stands below it. White space
does not count; ``...`` is any text, and on a line of its own any lines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorial").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
RUN = ("python", "console")
SHOWN = ("math", "text")  # not code
BIN = Path(sys.executable).parent


def commands(block: str) -> list[tuple[str, str]]:
    """Every command of a console block, and what it should print."""
    parts = re.split(r"^\$ ", block, flags=re.M)
    assert not parts[0], "a console block begins with a command"
    split = (part.partition("\n") for part in parts[1:])
    return [(command, wanted) for command, _, wanted in split]


def lines(text: str) -> list[str]:
    """Its lines without white space that only lays them out, nor empty ones."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def prints(wanted: str, text: str) -> bool:
    """Whether the text is what was wanted, line by line."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in lines(wanted)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines(text))) is not None


def check_console(block: str, folder: Path) -> None:
    """Run its commands and look at what they print."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    environment["PATH"] = f"{BIN}{os.pathsep}{environment['PATH']}"
    for command, wanted in commands(block):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = f"{command}\nprints\n{done.stdout}"
        assert done.returncode == 0, said
        assert prints(wanted, done.stdout), f"{said}and should print\n{wanted}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = FENCE.findall(page.read_text())
    assert {kind for kind, _ in blocks} <= {*RUN, *SHOWN}, "code that nobody runs"
    said = io.StringIO()
    for i, (kind, block) in enumerate(blocks):
        if kind == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(block, f"{page.name}, block {i}", "exec"), names)
        elif kind == "text":
            assert prints(block, said.getvalue()), f"block {i} should print\n{said.getvalue()}"
        elif kind == "console":
            check_console(block, tmp_path)


def test_what_is_not_printed_is_noticed(tmp_path: Path) -> None:
    check_console("$ echo one two three\none ... three\n", tmp_path)
    check_console("$ printf '1\\n2\\n\\n3'\n...\n2\n3\n", tmp_path)
    with pytest.raises(AssertionError, match="should print"):
        check_console("$ echo one\ntwo\n", tmp_path)
    with pytest.raises(AssertionError, match="no_such_command"):
        check_console("$ no_such_command\n", tmp_path)
