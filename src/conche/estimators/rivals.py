"""A discount that chooses itself: several pasts side by side, and every task is their judge.

With ``discount="auto"`` a stream has one path for every discount: nodes, ridge and memory of its
own. Before a task is learnt each path predicts it. A path that forgets becomes the model once it
has predicted better than the one that never does by more than luck would explain; where none has,
the model never forgets.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

from ..network import Network
from .records import TaskRecord
from .state import Lesson, StreamState, after_task


def begun(state: StreamState) -> StreamState:
    """A fresh stream with a path for each of its solver's discounts."""
    first, *others = state.setup.solver.discounts
    rivals = tuple(replace(state, discount=discount) for discount in others)
    return replace(state, discount=first, rivals=rivals)


def after_all(state: StreamState, network: Network, lesson: Lesson) -> StreamState:
    """The state after one more task, of all paths; the model is the best one's."""
    if not state.rivals:
        return after_task(state, network, lesson)
    paths = [after_task(replace(state, rivals=()), network, lesson)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the model itself has to say has been said
        paths += [after_task(rival, network, lesson) for rival in state.rivals]
    never = max(paths, key=lambda path: path.discount)
    judged = [
        replace(path, evidence=path.evidence.after(never.tested - path.tested)) for path in paths
    ]
    sure = [path for path in judged if path.evidence.sure]
    best = max(sure or [judged[paths.index(never)]], key=lambda path: path.evidence.gain)
    return _together(best, judged, paths[0].tasks[-1])


def _together(best: StreamState, paths: list[StreamState], said: TaskRecord) -> StreamState:
    """The best path with the others beside it. Of the task, the record has the error that the model
    made before (``said``), and what all paths have sent and taken."""
    record = best.tasks[-1].copy()
    record["before"] = said["before"]
    record["bytes"] = sum(path.tasks[-1]["bytes"] for path in paths)
    record["seconds"] = sum(path.tasks[-1]["seconds"] for path in paths)
    tasks = (*best.tasks[:-1], record)
    same = [replace(path, history=best.history, tasks=tasks) for path in paths]
    place = paths.index(best)
    return replace(same[place], rivals=(*same[:place], *same[place + 1 :]))
