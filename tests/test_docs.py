"""What the documents show is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").rglob("*.md")
        if path != ROOT / "docs" / "commands.md"  # written while the site is built
    ),
]
BLOCKS = [
    (name, i, code)
    for name in DOCUMENTS
    if "tutorial/" not in name  # whose blocks go on from each other: test_tutorials.py
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S))
]


@pytest.mark.parametrize(("name", "i", "code"), BLOCKS, ids=[f"{n}-{i}" for n, i, _ in BLOCKS])
def test_code_in_documents_runs(
    name: str, i: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{name}, block {i}", "exec"), {})


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text()):
        generated = link in ("commands.md", "examples/index.rst")  # checked by `make docs`
        if "://" not in link and not generated:
            assert ((ROOT / name).parent / link).exists(), link


def test_a_tasks_walk_visits_each_file_once_and_never_turns_back() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    walk = re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.M)
    assert 10 <= len(walk) <= 15 and len(set(walk)) == len(walk)
    assert all((ROOT / "src" / "conche" / file).is_file() for file in walk)
    modules = [file.removesuffix(".py").replace("/", ".") for file in walk]
    for k, file in enumerate(walk):  # none of them imports one that comes later
        source = (ROOT / "src" / "conche" / file).read_text()
        package = modules[k].split(".")[:-1]
        for dots, name in re.findall(r"^from (\.+)([\w.]*) import", source, re.M):
            parent = package[: len(package) - len(dots) + 1]
            target = ".".join([*parent, name]) if name else ".".join(parent)
            assert target not in modules[k:], (file, target)


def test_the_readme_names_every_room() -> None:
    text = (ROOT / "README.md").read_text().partition("## Reading the code")[2]
    rooms = [
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "src" / "conche").iterdir()
        if not path.name.startswith("__") and (path.is_dir() or path.suffix == ".py")
    ]
    assert [room for room in rooms if f"`{room}`" not in text] == []
