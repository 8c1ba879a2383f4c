"""The reference as this project writes it: what is shown of a class, and how parameters read."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Parameters", "Attributes", "Raises")
# Methods of public classes that only Conche itself calls
INTERNAL = {
    *("check_parameters", "check_stream", "go_on", "make_setup", "node_states", "network_"),
    *("solver", "get_params", "advance", "start", "with_all", "with_task", "of_model", "meant"),
    *("read_on", "sendable", "has_parts", "growing"),
}


def described(lines: list[str]) -> list[str]:
    """``name : words`` of a section as numpydoc reads it: the name alone, the words below it.

    The types are in the signature; after the colon the docstrings say what a parameter means.
    Examples are left as they are.
    """
    found: list[str] = []
    section = ""
    for i, line in enumerate(lines):
        under = lines[i + 1] if i + 1 < len(lines) else ""
        if line and set(under) == {"-"}:
            section = line
        match = re.match(r"([\w, *]+) :(?: (.*))?$", line) if section in SECTIONS else None
        if match:
            found.append(match[1])
            found.extend([as_written(f"    {match[2]}")] if match[2] else [])
        else:
            found.append(line if section == "Examples" else as_written(line))
    return found


def as_written(line: str) -> str:
    """Mathematics in plain text, such as |w*_t|^2: neither a substitution nor the start of an
    emphasis. What stands in backticks, and whole *words*, are left alone."""
    parts = re.split(r"(`+[^`]+`+|(?<!\S)\*\w+\*(?!\S))", line)
    parts[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before numpydoc reads a docstring."""
    lines[:] = described(lines)


def skip(app: Sphinx, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Only what Conche defines, and of that what users call."""
    getter = getattr(thing, "fget", thing)
    ours = not callable(getter) or str(getattr(getter, "__module__", "")).startswith("conche")
    return True if name in INTERNAL or not ours else None


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
