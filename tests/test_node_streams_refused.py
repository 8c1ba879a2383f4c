"""Bad input of streams whose nodes have files of their own: one line that names node and file, and
nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import conche

from .helpers.commands import CONCHE
from .helpers.commands import run_here as run
from .helpers.parties import describe, edit, in_column, renamed, small, without_column


def toml(old: str, new: str) -> Callable[[Path], None]:
    """Change the description."""

    def change(root: Path) -> None:
        text = (root / "stream.toml").read_text()
        assert old in text
        (root / "stream.toml").write_text(text.replace(old, new))

    return change


def csv(file: str, change: Callable[[list[list[str]]], object]) -> Callable[[Path], None]:
    return lambda root: edit(root / file, change)


KEY = 'key = ["day", "hour"]'
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    # what is wrong with the description
    "no TOML": (lambda root: (root / "stream.toml").write_text("key ="), "is not TOML"),
    "no such file": (lambda root: (root / "stream.toml").unlink(), "stream.toml: cannot be read"),
    "a word it does not know": (toml("files", "fles"), r"\[.*\] 'fles' means nothing.*'files'"),
    "no target": (toml("[target]", "[nodes.x]"), r"\[target\]: is missing"),
    "no nodes": (
        lambda root: describe(root, ()),
        r"stream.toml: \[nodes\]: is missing",
    ),
    "a pattern for a name": (toml("[nodes.north]", '[nodes."no*"]'), r"node 'no\*': a name must"),
    "no home": (toml(KEY, f'{KEY}\nkeep_weights = "nodes"'), r"\[nodes.north\] home: is missing"),
    "nobody keeps weights": (toml(KEY, f'{KEY}\nkeep_weights = "mine"'), "keep_weights = 'mine'"),
    # what is wrong before anything is learnt
    "a key that a node has not": (
        csv("south/may.csv", renamed("hour", "hours")),
        r"node 'south': \S*south/may.csv: no column 'hour' for the key; did you mean 'hours'",
    ),
    "a key that the target has not": (
        csv("target/jan.csv", without_column("day")),
        r"target: \S*target/jan.csv: no column 'day' for the key",
    ),
    "no column for the target": (
        csv("target/jan.csv", renamed("y", "Y")),
        r"target: \S*target/jan.csv: no column 'y' for the target",
    ),
    "a node without the task's file": (
        lambda root: (root / "south" / "mar.csv").unlink(),
        r"node 'south': \S*south: no file for the task 'mar'; did you mean 'may'",
    ),
    "a node without a folder": (
        lambda root: shutil.rmtree(root / "north"),
        r"node 'north': \S*north: no such file or folder",
    ),
    "a column that has gone": (
        csv("north/may.csv", without_column("b")),
        r"node 'north': \S*north/may.csv: column 'b' of the first task is missing",
    ),
    "a column that nobody has": (
        toml('files = "south"', 'files = "south"\nfeatures = ["z"]'),
        r"node 'south': \S*south/jan.csv: no column 'z' among the features",
    ),
    "two files of one task": (
        lambda root: shutil.copy(root / "north" / "may.csv", root / "north" / "may.csv.gz"),
        r"node 'north': \S*may.csv.gz: the same task as may.csv",
    ),
    "a later file of the target without a column": (
        csv("target/may.csv", renamed("y", "Y")),
        r"target: \S*target/may.csv: no column 'y' for the target; did you mean 'Y'\?$",
    ),
    "a later file of the target without the key": (
        csv("target/may.csv", without_column("day")),
        r"target: \S*target/may.csv: no column 'day' for the key$",
    ),
    "a later file of the target without weights": (
        toml('column = "y"', 'column = "y"\nweight = "w"'),
        r"target: \S*target/jan.csv: no column 'w' for the weight$",
    ),
    # what is wrong with a task, while the stream is being learnt
    "types that differ": (
        csv("south/mar.csv", in_column("hour", "h*")),
        r"node 'south': \S*south/mar.csv: has none of the 30 rows, such as 'd\d, \d+': the key "
        r"'hour' is a text here, and a number beside the target",
    ),
    "a key twice": (
        csv("south/mar.csv", lambda rows: rows.append(rows[3])),
        r"node 'south': \S*south/mar.csv: rows 3, 31 have the same key",
    ),
    "a key twice beside the target": (
        csv("target/mar.csv", lambda rows: rows.append(rows[3])),
        r"target: \S*target/mar.csv: the key '.*' is in 2 rows",
    ),
    "a key without a value": (
        csv("south/mar.csv", in_column("hour", "")),
        r"node 'south': \S*south/mar.csv: column 'hour' has 30 missing values",
    ),
    "rows that a node has not": (
        csv("south/may.csv", lambda rows: rows.__delitem__(slice(3, 8))),
        r"node 'south': \S*south/may.csv: 5 of the 30 rows are missing, with the keys "
        r"'d\d, \d+', '.*', '.*', ...; --missing mean fills them, --rows common leaves",
    ),
    "a value that is missing": (
        csv("south/may.csv", lambda rows: rows[4].__setitem__(3, "")),
        r"node 'south': \S*south/may.csv: column 'd' has 1 missing value",
    ),
    "a text for a number": (
        csv("north/may.csv", in_column("a", "high")),
        r"node 'north': \S*north/may.csv: column 'a'",
    ),
    "a file that is none": (
        lambda root: (root / "north" / "may.csv").write_bytes(b"\0\1\2"),
        r"node 'north': \S*north/may.csv",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_that_names_node_and_file(what: str, tmp_path: Path) -> None:
    small(tmp_path)
    change, said = BAD[what]
    change(tmp_path)
    done = run("train", "stream.toml", "--out", "m.conche", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 1), done
    assert re.search(said, lines[0]), lines[0]
    assert "Traceback" not in done.stderr and not (tmp_path / "m.conche").exists()
    left = tmp_path / "m.conche.partial"
    learnt = re.search(r"(\d) tasks? learnt", lines[0])
    assert left.exists() == (learnt is not None)
    if learnt is not None:
        assert conche.load(left).n_tasks_seen_ == int(learnt[1])


def test_what_a_row_holds_is_not_told(tmp_path: Path) -> None:
    """A node's file may be broken; whose it is finds the row, and nobody else reads it."""
    small(tmp_path)
    with (tmp_path / "south" / "mar.csv").open("a") as file:
        file.write("secret\x1b[31m,row\n")
    done = run("train", "stream.toml", "--out", "m.conche", cwd=tmp_path)
    said = r"node 'south': \S*mar.csv: cannot be read \(.*Row #32: Expected 5 columns, got 2\)$"
    assert done.returncode == 2 and re.search(said, done.stderr), done.stderr
    assert "secret" not in done.stderr and "\x1b" not in done.stderr


NO_POWERS = "-dac_override,-dac_read_search"
AS_USER = ["setpriv", f"--bounding-set={NO_POWERS}", f"--inh-caps={NO_POWERS}"]


@pytest.mark.skipif(
    not os.getuid() and shutil.which("setpriv") is None, reason="root may read and write anything"
)
@pytest.mark.parametrize(
    ("place", "mode", "said"),
    [
        ("homes", 0o500, r"homes/north.secret: cannot be written \(Permission denied\)"),
        ("homes/north.secret", 0, r"homes/north.secret: cannot be read \(Permission denied\)"),
        ("north", 0, r"north: cannot be read \(Permission denied\)"),
        ("north/jan.csv", 0, r"north/jan.csv: cannot be read \(Permission denied\)"),
        (".", 0o500, r"homes: cannot be made \(Permission denied\)"),
    ],
)
def test_files_that_may_not_be_touched(tmp_path: Path, place: str, mode: int, said: str) -> None:
    root = tmp_path / "own"
    small(root)
    describe(root, ("north", "south"), 'keep_weights = "nodes"\nhome = "homes"')
    if place != ".":
        (root / "homes").mkdir()
    if place.endswith("secret"):
        (root / place).write_text("x" * 32)
    (root / place).chmod(mode)
    command = [*CONCHE, "train", "own/stream.toml", "--out", "m.conche"]
    command = command if os.getuid() else AS_USER + command
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    (root / place).chmod(0o700)
    assert done.returncode == 2 and re.search(rf"conche: node 'north': \S*{said}$", done.stderr)
    assert len(done.stderr.splitlines()) == 1
