"""The site's source and the check of what was built; `make docs` builds it, and is part of CI."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

import conche

DOCS = Path(__file__).parents[1] / "docs"
MODULES = {"conche": conche, "conche.theory": conche.theory, "conche.tasks": conche.tasks}
PUBLIC = {
    f"{module}.{name}": getattr(found, name)
    for module, found in MODULES.items()
    for name in found.__all__
    if not inspect.ismodule(getattr(found, name))
    and (module != "conche.tasks" or name not in conche.__all__)
}
RESULTS = ("ErrorMatrix", "Plan", "Simulation", "Moments", "TaskStatistics")  # never made by users
DEFAULTS = ("ConcheRegressor", "ConcheClassifier")  # whose parameters are the other two's


def listed() -> list[str]:
    """All names that the reference lists."""
    found, module = [], ""
    for line in (DOCS / "api" / "index.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z][\w.]*", line):
            found.append(f"{module}.{line.strip()}")
    return found


def test_the_reference_lists_every_public_name_once() -> None:
    names = listed()
    assert set(PUBLIC) <= set(names), sorted(set(PUBLIC) - set(names))
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    """Which the doctests of `src` run."""
    said = inspect.getdoc(PUBLIC[name]) or ""
    assert re.search(r"^Examples\n--------\n>>> ", said, re.M)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_described(name: str) -> None:
    thing = PUBLIC[name]
    if (inspect.isclass(thing) and issubclass(thing, Exception)) or name.split(".")[-1] in (
        *RESULTS,
        *DEFAULTS,
    ):
        return
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w+\n---|\Z)", inspect.getdoc(thing) or "", re.M | re.S
    )
    entries = re.findall(r"^([\w, ]+) :", section[1] if section else "", re.M)
    described = {each.strip() for entry in entries for each in entry.split(",")}
    taken = [
        each.name
        for each in inspect.signature(thing).parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD  # described by their own names
    ]
    assert [each for each in taken if each not in described] == []


def test_every_document_is_in_the_table_of_contents() -> None:
    entries = set(re.findall(r"^([\w/]+)$", (DOCS / "index.md").read_text(), re.M))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    generated = {"commands", "examples/index"}
    assert pages - {"index"} - generated == entries - generated


def test_a_site_that_is_not_whole_is_noticed(tmp_path: Path) -> None:
    problems = runpy.run_path(str(DOCS / "check_site.py"))["problems"]
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="https://x.org">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1><img src="b.png">')
    (tmp_path / "b.png").touch()
    assert problems(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="#gone">b</a><a href="c.html">c</a><script src="//cdn.org/x.js"></script>'
        '<a href="https://x .org">x</a><a href="htps://x.org">x</a>'
        "<style>@import url(https://fonts.org/f.css);</style>"
    )
    (tmp_path / "c.css").write_text("@font-face { src: url('https://fonts.org/f.woff') }")
    assert sorted(problems(tmp_path)) == [
        "a.html: no anchor b.html#here",
        "b.html: fetches //cdn.org/x.js",
        "b.html: fetches https://fonts.org/f.css",
        "b.html: no anchor #gone",
        "b.html: no file c.html",
        "b.html: not an address htps://x.org",
        "b.html: not an address https://x .org",
        "c.css: fetches https://fonts.org/f.woff",
    ]
