"""`python -m benchmarks.peers`: Conche beside what people would use instead, in one run.

    python -m benchmarks.peers [--data DIR] [--out docs/figures] [tasks] [streams] [beside] [rounds]

``--data`` is a folder with ``mnist`` and ``beijing-air``; what is not there, or not installed
(``pip install 'conche[bench]'``), is skipped with the reason. Every method runs in a process of its
own. Prints the tables of docs/peers.md as Markdown, and draws its figures.
"""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from . import beside, one_task, rounds, streams


def draw(panels: dict[str, dict[str, Any]], file: Path, ylabel: str, least: float) -> None:
    """Error over seconds: a panel for each problem, a line or a point for each method."""
    wide = min(len(panels), 3)
    tall = -(-len(panels) // wide)
    _, axes = plt.subplots(
        tall, wide, figsize=(5.2 * wide, 3.6 * tall), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, lines) in zip(axes.flat, panels.items(), strict=False):
        for i, (name, path) in enumerate(lines.items()):
            points = path if isinstance(path, list) else [path]
            x = [seconds for seconds, _ in points]
            y = [max(error, least) if error < 1e4 else float("nan") for _, error in points]
            own = name.startswith("Conche")
            style = dict(color=f"C{i % 10}", marker="o" if own else "x", lw=2 if own else 1, ms=5)
            axis.plot(x, y, label=name, **style)
        axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel=ylabel, title=title)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.legend(frameon=False, fontsize=6)
        axis.grid(alpha=0.3)
    plt.savefig(file, dpi=120)
    plt.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="tasks, streams, beside, rounds; all without any")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = given.parts or ["tasks", "streams", "beside", "rounds"]
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n", flush=True)
    if "tasks" in parts:
        points = one_task.run()
        draw(points, given.out / "peers_tasks.png", "objective above the best", 1e-12)
    if "streams" in parts:
        paths = streams.run(given.data)
        draw(paths, given.out / "peers_streams.png", "error over all tasks", 1e-12)
    if "beside" in parts:
        beside.run(given.data)
    if "rounds" in parts:
        rounds.run()


if __name__ == "__main__":
    main()
