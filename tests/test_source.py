"""The source keeps its own rules: small files and functions, no shortcuts around the design."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "conche").rglob("*.py"))
FOLDERS = ("src", "tests", "benchmarks", "examples")
EVERYWHERE = [path for name in FOLDERS for path in sorted((ROOT / name).rglob("*.py"))]
FORBIDDEN = {  # pattern: what to do instead
    r"isinstance\(.*Graph": "let the network say which steps it takes",
    r'" in ' + "said": "give the scalars a type",
    r"loss\.name ==": "let the loss answer",
    "__" + "dict__": "state is a value",
    r"assert " + r"isinstance": "make the type say it",
    r"fmt: " + r"skip": "accept the formatter",
    r"type: ignore(?!\[[\w, -]+\]  # \w)": "say which error, and why",
}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_shortcuts(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{i}: {line.strip()}"
        for path in EVERYWHERE
        if path != Path(__file__).resolve()
        for i, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert not found, f"{FORBIDDEN[pattern]}: {found}"


def test_the_package_neither_reads_nor_writes_pickle() -> None:
    words = re.compile(r"\b(import pickle|allow_pickle=True|joblib\.(load|dump))")
    assert [str(path) for path in SOURCES if words.search(path.read_text())] == []


def test_files_and_functions_are_small() -> None:
    lengths = {path: path.read_text().count("\n") for path in SOURCES}
    assert statistics.median(lengths.values()) < 150
    # a file that is one thing may be that long: what it says is read in one go
    assert [str(path) for path, n in lengths.items() if n > 600] == []
    long, wide = [], []
    for path in SOURCES:
        for node in functions(ast.parse(path.read_text())):
            name = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            if (node.end_lineno or 0) - node.lineno + 1 > 60:
                long.append(name)
            taken = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            if len([a for a in taken if a not in ("self", "cls")]) > 8:
                wide.append(name)
    assert long == []
    assert [name for name in wide if "estimators" not in name or "__init__" not in name] == []


def test_no_module_imports_anothers_private_name() -> None:
    found = []
    for path in EVERYWHERE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.level or "conche" in str(node.module)):
                private = [a.name for a in node.names if re.match(r"_[a-z]", a.name)]
                found += [f"{path.relative_to(ROOT)}: {name}" for name in private]
    assert found == []


def test_every_public_or_abstract_method_says_what_it_does() -> None:
    """Of the public classes and functions, and of everything abstract; an override may inherit."""
    missing = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if not ast.get_docstring(node):
                    missing.append(f"{path.relative_to(ROOT)}: class {node.name}")
                missing += [
                    f"{path.relative_to(ROOT)}: {node.name}.{method.name}"
                    for method in node.body
                    if isinstance(method, ast.FunctionDef)
                    and any("abstract" in ast.unparse(d) for d in method.decorator_list)
                    and not ast.get_docstring(method)
                ]
    assert missing == []
