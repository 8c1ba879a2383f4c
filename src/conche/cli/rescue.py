"""What is learnt is not lost: where a run of ``conche train`` ends early, its model is saved."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

from ..common.launch import launched_rank
from ..common.words import counted, one_line
from ..errors import ConcheError
from ..estimators.base import LinearModel
from ..model_file import Run, load_run, save
from ..node_stream import NodeStream
from ..training import Stream
from .stops import Stopped, Terminated


def partial(out: Path) -> Path:
    """Where the model of a run that ended early is."""
    return out.with_name(f"{out.name}.partial")


class Rescue:
    """Around the learning: an error, or an interrupt, is told with what is left of the run.

    Parameters
    ----------
    model, run : which the run trains, and how far it is; it is told what it has `reached`.
    out : where the model was to be written.
    checkpoint : the folder that has it after every task, if any; then nothing needs saving.
    stream : what is learnt; its nodes may keep weights at home.
    """

    def __init__(
        self, model: LinearModel, out: Path, checkpoint: Path | None, run: Run, stream: Stream
    ):
        self.out, self.checkpoint, self.stream = out, checkpoint, stream
        self._reached = copy(model), run

    @property
    def run(self) -> Run:
        """What was learnt."""
        return self._reached[1]

    def reached(self, model: LinearModel, run: Run) -> None:
        """So far the run is. The model goes on; what it is now is kept beside what is known of it,
        and both change in one moment."""
        self._reached = copy(model), run

    def __enter__(self) -> Rescue:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        if launched_rank() is not None:  # of several ranks none may save alone
            return
        if isinstance(error, KeyboardInterrupt):
            how = Terminated if isinstance(error, Terminated) else Stopped
            raise how(f"{how.word}: {self._rescued()}") from None
        if isinstance(error, ConcheError | OSError) and self.run.tasks:
            said = f"{one_line(error)}; {self._rescued('once that is mended, ')}"
            raise type(error)(said) from error

    def forget(self) -> None:
        """The run is over: what an earlier one left is not needed any more."""
        left = self._left()
        partial(self.out).unlink(missing_ok=True)
        self._let_go(left)

    def _left(self) -> list[set[str]] | None:
        """By which this stream's nodes find the weights of the model that an earlier run has
        left; None: they have none."""
        where, stream = partial(self.out), self.stream
        if launched_rank() is not None or not isinstance(stream, NodeStream) or not stream.homes:
            return None
        with suppress(ConcheError, OSError):
            left, _ = load_run(where)
            return stream.tokens(left) if left.state_.setup.homes == stream.homes else None
        return None

    def _let_go(self, left: list[set[str]] | None) -> None:
        """Those weights go, once the model's file has gone."""
        if left is not None and isinstance(self.stream, NodeStream):
            with suppress(ConcheError, OSError):  # a file too many is no reason to fail
                self.stream.drop(left, self._reached[0])

    def _rescued(self, first: str = "") -> str:
        """What there is of the run, and how it goes on; ``first`` something is to be done."""
        count = len(self.run.tasks)
        if not count:
            return "nothing was learnt yet"
        learnt = f"{counted(count, 'task')} learnt, up to {self.run.tasks[-1]!r}"
        if self.checkpoint is not None:
            return f"{learnt}: in {self.checkpoint}, and {first}--resume goes on"
        where, left = partial(self.out), self._left()
        try:
            model, run = self._reached
            save(model, where, timings=False, run=run)
        except (ConcheError, OSError) as error:
            return f"{learnt}, and could not be saved to {where} ({one_line(error)})"
        self._let_go(left)
        return f"{learnt}: saved to {where}, and {first}the same command with --resume goes on"
