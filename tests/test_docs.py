"""What the documents show is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
BLOCKS = [
    (name, i, code)
    for name in DOCUMENTS
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S))
]


@pytest.mark.parametrize(("name", "i", "code"), BLOCKS, ids=[f"{n}-{i}" for n, i, _ in BLOCKS])
def test_code_in_documents_runs(name, i, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{name}, block {i}", "exec"), {})


def test_equations_name_tests_and_functions_that_exist():
    import conche

    text = (ROOT / "docs" / "equations.md").read_text()
    tests = "\n".join(p.read_text() for p in (ROOT / "tests").glob("test_*.py"))
    for name in re.findall(r"\b(test_\w+)(?!\w*\.py)", text):
        assert f"def {name}(" in tests or (ROOT / "tests" / f"{name}.py").exists(), name
    for name in re.findall(r"`theory\.(\w+)", text):
        assert hasattr(conche.theory, name), name


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text()):
        if "://" not in link:
            assert ((ROOT / name).parent / link).exists(), link
