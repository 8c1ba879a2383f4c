"""`make bench`: print the tables of the README as Markdown."""

from __future__ import annotations

import os
import platform
from itertools import chain

from . import core, engines, figures, plan, rounds, streams
from .core import Row


def main() -> None:
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n", flush=True)
    print("| what | measured | against | measured | ratio | must be |")
    print("|---|---|---|---|---|---|")
    kinds = (core, rounds, engines, streams, plan, figures)
    for row in chain.from_iterable(kind.rows() for kind in kinds):
        print(line(row), flush=True)


def line(row: Row) -> str:
    ours, floor = (quantity(x) for x in (row.seconds, row.floor))
    return f"| {row.what} | {ours} | {row.against} | {floor} | {row.ratio:.2f} | {row.limit} |"


def quantity(x: float) -> str:
    if x > 1e5:
        return f"{x / 1e6:.0f} MB"
    return f"{1e3 * x:.1f} ms" if x < 1 else f"{x:.2f} s"


if __name__ == "__main__":
    main()
