"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LOOPBACK = ("127.0.0.1", "localhost", None)  # None: of a file, or of data


def chromium() -> str:
    """Where it is; a test that needs it is skipped where it is not."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set CHROMIUM to its path")
    return str(found)


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser with nothing of its own to say to anybody."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    where = chromium()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=where,
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update"],
        )
        yield browser
        browser.close()


@contextmanager
def page_of(
    browser: Any, width: int = 1280, scheme: str = "light", expected: str | None = None
) -> Iterator[Any]:
    """A page whose every request must go to loopback, and whose console must be without errors
    (but for an ``expected`` one)."""
    wrong: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
    )

    def look(route: Any) -> None:
        if urlsplit(route.request.url).hostname in LOOPBACK:
            route.continue_()
        else:
            wrong.append(f"asked for {route.request.url}")
            route.abort()

    context.route("**/*", look)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert [each for each in wrong if expected is None or expected not in each] == []


def barriers(page: Any) -> list[str]:
    """What axe-core finds serious or critical."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
