"""docs/equations.md and theory.md: every function and every test that they name exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import conche

ROOT = Path(__file__).resolve().parents[1]
CELLS = [  # of every table the last two columns: in the code, and the tests
    tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[-3:-1])
    for page in ("equations.md", "theory.md")
    for line in (ROOT / "docs" / page).read_text().splitlines()
    if line.startswith("|") and "---" not in line
]


def names(column: int) -> list[str]:
    """What stands in backticks in a column, without arguments, each once."""
    quoted = [name for cells in CELLS for name in re.findall(r"`([^`]+)`", cells[column])]
    return list(dict.fromkeys(name.partition("(")[0] for name in quoted))


def exists(name: str) -> bool:
    """Whether conche.NAME is there: a module, its attribute, or a field that a class declares."""
    found: object = conche
    path = "conche"
    for part in name.split("."):
        path = f"{path}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif part in getattr(found, "__annotations__", {}):
            found = None
        else:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
    return True


@pytest.mark.parametrize("name", names(0))
def test_every_function_exists(name: str) -> None:
    assert exists(name)


def test_what_does_not_exist_is_noticed() -> None:
    assert not exists("theory.theorem_9")
    assert not exists("nodes.Node.levitate")
    assert len(names(0)) > 30 and len(names(1)) > 30


def defined_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", names(1))
def test_every_test_exists(name: str) -> None:
    file, _, test = name.rpartition("::")
    if test.endswith(".py"):
        assert (ROOT / "tests" / test).exists()
    else:
        assert test in defined_in(file or "test_theory.py")
