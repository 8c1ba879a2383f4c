"""Where words go. One console for tables and bars, so that they take turns."""

from __future__ import annotations

import os
import sys

from rich import console


class Console(console.Console):
    """rich's, but for one thing: where nobody reads on (``| head``), the work goes on in silence.

    What is being learnt must not be lost because nobody listens.
    """

    def on_broken_pipe(self) -> None:
        """Say no more, and let nobody else trip over it."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
