"""``conche demo``: what a newcomer sees first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..options import command, option


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Options of ``conche demo``."""

    out: Path = option("Folder for the plot.", Path("demo"))


@command(Demo)
def demo(options: Demo) -> None:
    """Learn two streams and compare Algorithm 1, Conche and offline. Takes under a minute."""
    from ..demo import show

    show(options.out)
