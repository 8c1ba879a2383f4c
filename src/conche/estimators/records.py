"""What a stream notes of every round and of every task."""

from __future__ import annotations

from typing import TypedDict


class RoundRecord(TypedDict):
    """One round, as ``history_`` shows it."""

    task: int  # counted from 1
    round: int  # counted from 1
    residual: float | None  # root mean square of y - A w after it (of the loss's gradient)
    loss: float | None  # mean loss over samples after the round, summed over outputs
    bound: (
        float | None
    )  # how far the objective is above its optimum at most, in the unit of the loss
    bytes: int  # sent between coordinator and nodes in this round, both ways, all nodes
    seconds: float
    accuracy: float  # of the nodes' own solutions: what is left of their gradients; 0 is exact
    disagreement: float  # between the nodes' predictions, without a centre; else 0


class TaskRecord(TypedDict):
    """One task, as ``tasks_`` shows it. Of lossless memory, errors are known where they were asked
    for, as `conche.train` does."""

    task: int  # counted from 1
    before: float | None  # its error before it was learnt: mean square, or error rate
    after: float | None
    samples: int
    bytes: int  # sent between coordinator and nodes
    seconds: float
    gap: float | None  # how far the objective of all rows is above its minimum: a share (estimated)
    gap_bound: float | None  # the same, at most; infinity where nobody knows
