"""What is learnt is not lost: where a run of ``conche train`` ends early, its model is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..common.launch import launched_rank
from ..common.words import counted, one_line
from ..errors import ConcheError
from ..estimators.base import LinearModel
from ..model_file import Run, save


class Stopped(KeyboardInterrupt):
    """An interrupt, with the line that says what was learnt and how to go on."""


def partial(out: Path) -> Path:
    """Where the model of a run that ended early is."""
    return out.with_name(f"{out.name}.partial")


class Rescue:
    """Around the learning: an error, or an interrupt, is told with what is left of the run.

    Parameters
    ----------
    model, run : which the run trains, and how far it is; ``run`` is kept up to date.
    out : where the model was to be written.
    checkpoint : the folder that has it after every task, if any; then nothing needs saving.
    """

    def __init__(self, model: LinearModel, out: Path, checkpoint: Path | None, run: Run):
        self.model, self.out, self.checkpoint, self.run = model, out, checkpoint, run

    def __enter__(self) -> Rescue:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        if launched_rank() is not None:  # of several ranks none may save alone
            return
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(f"interrupted: {self._rescued()}") from None
        if isinstance(error, ConcheError | OSError) and self.run.tasks:
            raise type(error)(f"{one_line(error)}; {self._rescued()}") from error

    def forget(self) -> None:
        """The run is over: what an earlier one left is not needed any more."""
        partial(self.out).unlink(missing_ok=True)

    def _rescued(self) -> str:
        count = len(self.run.tasks)
        if not count:
            return "nothing was learnt yet"
        learnt = f"{counted(count, 'task')} learnt, up to {self.run.tasks[-1]!r}"
        if self.checkpoint is not None:
            return f"{learnt}: in {self.checkpoint}, and --resume goes on"
        where = partial(self.out)
        try:
            save(self.model, where, timings=False, run=self.run)
        except (ConcheError, OSError) as error:
            return f"{learnt}, and could not be saved to {where} ({one_line(error)})"
        return f"{learnt}: saved to {where}, and the same command with --resume goes on"
