"""A report: one file that shows what the page shows of a model, with nothing beside it.

The scripts are the page's own. Modules cannot import each other inside one file, so each becomes a
function that returns what it exports, and they are called in the order of their imports.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..common.atomic import write_atomically
from ..common.version import __version__

IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.M)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="conche {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="top"><h1 class="brand">Conche</h1><span class="note">report</span></header>
<main id="view" class="report"><noscript>This report draws with JavaScript.</noscript></main>
<footer class="report-foot">Written by conche {version}, {written}.</footer>
<p id="said" class="visually-hidden" role="status" aria-live="polite"></p>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def write_report(description: dict[str, Any], path: Path, command: str) -> None:
    """Write a model's `description` as one HTML file, whole or not at all; ``command`` is what was
    typed, and makes all of its figures again."""
    figures = {
        name: {**figure, "command": command} for name, figure in description["figures"].items()
    }
    told = {**description, "command": command, "figures": figures}
    write_atomically(path, report_of(told).encode())


def report_of(description: dict[str, Any]) -> str:
    """The file's text. Its policy lets nothing run but its own script, and fetches nothing."""
    script, style = bundle("report"), _static("style.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return PAGE.format(
        policy=html.escape(policy),
        version=__version__,
        title=html.escape(f"{description['file']}: Conche report"),
        style=style,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        data=json.dumps(description, allow_nan=False).replace("<", "\\u003c"),  # nothing ends it
        script=script,
    )


def bundle(first: str) -> str:
    """A module and all it imports, in one script."""
    order: list[str] = []

    def visit(name: str) -> None:
        for _, needed in IMPORT.findall(_static(f"{name}.js")):
            visit(needed)
        if name not in order:
            order.append(name)

    visit(first)
    return "\n" + "\n".join(map(_as_function, order))


def _as_function(name: str) -> str:
    """One module: what it imports is what others have returned."""
    text = _static(f"{name}.js")
    exported = ", ".join(found[1] for found in EXPORT.findall(text))
    text = EXPORT.sub(r"\1 \2", IMPORT.sub(r"const \1 = $\2;\n", text))
    return f"const ${name} = (() => {{\n{text}return {{ {exported} }};\n}})();"


def _static(name: str) -> str:
    return (files("conche.explore") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
