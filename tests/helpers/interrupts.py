"""Streams whose learning is interrupted at random moments, against undisturbed twins."""

from __future__ import annotations

import copy
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import conche

from .engine_battery import states


def same_everything(model: conche.CoCoARegressor, twin: conche.CoCoARegressor) -> bool:
    """To the last bit, on every node."""
    pairs = zip(states(model), states(twin), strict=True)
    arrays = [(a.to_arrays(), b.to_arrays()) for a, b in pairs]
    rounds = [[(r["task"], r["loss"]) for r in m.history_] for m in (model, twin)]
    return (
        model.n_tasks_seen_ == twin.n_tasks_seen_
        and rounds[0] == rounds[1]
        and np.array_equal(model.coef_, twin.coef_)
        and model.intercept_ == twin.intercept_
        and all(a.keys() == b.keys() for a, b in arrays)
        and all(np.array_equal(a[key], b[key]) for a, b in arrays for key in a)
    )


def interrupted(call: Callable[[], object], seconds: float) -> bool:
    """Whether a KeyboardInterrupt, given as Ctrl-C gives it, came before the call was over."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    except KeyboardInterrupt as error:
        inside = error.__traceback__ and error.__traceback__.tb_next
        return inside is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def main() -> None:
    """Many of them, while streams are learnt on many nodes: afterwards all that the model has come
    to is what an undisturbed twin has come to after as many tasks, and it goes on as the twin does.

    python -m tests.helpers.interrupts 2000 500 damped
    """
    interrupts, nodes = map(int, sys.argv[1:3])
    solver: Any = sys.argv[3] if len(sys.argv) > 3 else conche.Memory(rank=8)
    tasks = conche.gaussian_tasks(10, 20, 2 * nodes, n_shared=nodes, noise_var=0.1)
    rng, whole, count = np.random.default_rng(0), np.inf, 0
    while count < interrupts:  # another stream: first tasks, too, are interrupted
        model, twin = (
            conche.CoCoARegressor(n_nodes=nodes, solver=solver, fit_intercept=True, scaling="first")
            for _ in range(2)
        )
        for seen, task in enumerate(tasks):
            clock = time.perf_counter()
            after = copy.deepcopy(twin).partial_fit(task.X, task.y)
            whole, hits = min(whole, time.perf_counter() - clock), 0
            learn = partial(model.partial_fit, task.X, task.y)
            while hits < 5:
                hits += interrupted(learn, rng.uniform(1e-6, whole))
                if hasattr(model, "state_") and model.n_tasks_seen_ > seen:
                    break
                assert seen == 0 or same_everything(model, twin)
            else:
                learn()
            assert same_everything(model, after)
            twin, count = after, count + hits
    print(f"{count} interrupts, and nothing was lost")


if __name__ == "__main__":
    main()
