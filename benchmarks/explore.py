"""How soon `conche explore` shows something, in a real browser: `python -m benchmarks.explore`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from tests.helpers.browser import browsing, page_of
from tests.helpers.explored import explored

from .core import Row

MOVES = 20
# one step of the slider, until the curve on the page is another one and has been painted
MOVE = """async () => {
  const slider = [...document.querySelectorAll("input[type=range]")].at(%d);
  const shown = () => document.querySelector(".figure .s2 .line").getAttribute("d");
  const before = shown();
  const clock = performance.now();
  slider.value = Number(slider.value) + (%d %% 2 ? 9 : -7);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  while (shown() === before) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return (performance.now() - clock) / 1000;
}"""


def rows() -> Iterator[Row]:
    """The first picture after the command was typed, and a slider's move to the new curve."""
    with browsing() as browser:
        first, moves = [], []
        for _ in range(3):
            clock = time.perf_counter()
            with explored() as server, page_of(browser) as page:
                page.goto(f"{server.address}&p=1000000&T=64&shared=700000")
                page.wait_for_selector(".figure svg .s2 .line", state="attached")
                first.append(time.perf_counter() - clock)
                for i in range(MOVES):
                    moves.append(page.evaluate(MOVE % (i % 2, i)))  # columns and samples in turn
                    time.sleep(0.05)
        yield Row("explore: start to the first picture", "3 s", min(first), 3.0, "<= 1")
        what = f"explore: a slider's move to the new curve, p = 1e6, T = 64, median of {len(moves)}"
        yield Row(what, "150 ms", statistics.median(moves), 0.15, "<= 1")
        yield Row("  the slowest of them", "150 ms", max(moves), 0.15, "")


if __name__ == "__main__":
    from .__main__ import line

    for row in rows():
        print(line(row))
