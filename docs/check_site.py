"""After a build: every link and anchor within the site leads somewhere, and nothing is fetched.

    python docs/check_site.py site

Links to other sites are not followed, but must be well formed. What a page loads by itself
(scripts, styles, fonts, images) must be a file of this one: it is read offline, and nobody is told
who reads it.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = ("script", "img", "iframe", "audio", "video", "source", "embed", "object", "link")
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.I)
OUTSIDE = re.compile(r"^(?:https://[\w-]+(?:\.[\w-]+)+(?:/\S*)?|mailto:\S+@\S+)$")
IN_STYLES = re.compile(r"""(?:@import\s*(?:url\()?|url\()\s*["']?([^"')\s;]+)""")


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = IN_STYLES.findall(
            " ".join(re.findall(r"<style.*?</style>", text, re.S))
        )
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADING and found.get("rel") not in ("canonical", "author"):
            candidates = [part.split()[0] for part in found.get("srcset", "").split(",") if part]
            self.loads += [
                found[name] for name in ("src", "href", "data", "poster") if name in found
            ]
            self.loads += candidates


def problems(site: Path) -> list[str]:
    """One line for each link or file that is missing, or would be fetched from elsewhere."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in page.loads:
            if ELSEWHERE.match(link):
                found.append(f"{path.relative_to(site)}: fetches {link}")
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if ELSEWHERE.match(link) or parts.scheme:
                if link in page.links and not OUTSIDE.match(link):
                    found.append(f"{path.relative_to(site)}: not an address {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{path.relative_to(site)}: no file {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path.relative_to(site)}: no anchor {link}")
    for path in sorted(site.rglob("*.css")):
        for link in IN_STYLES.findall(path.read_text()):
            if ELSEWHERE.match(link):
                found.append(f"{path.relative_to(site)}: fetches {link}")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    wrong = problems(site)
    print("\n".join(wrong) or f"{site.name}: links, anchors and requests are in order")
    sys.exit(1 if wrong else 0)
