"""Simulates one wish and prints lines of JSON as it goes; a process of its own.

``python -m conche.explore.worker '{"p": 128, ...}' [PARENT]``. It can be stopped at any moment, and
ends by itself when the process with the number PARENT is gone, which started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..common.arrays import Array, even_sizes
from ..common.device import Device, find_device
from ..common.plain import defined
from ..errors import ParameterError
from ..paper.simulation import span
from ..paper.simulation.model import Model, make_model
from ..paper.simulation.rows import by_rows, learning_curves
from ..paper.simulation.simulate import batched
from .settings import Wish

MOST_ENTRIES = 1.2e7  # of one trial's largest matrix
MOST_WORK = 4e12  # products in all trials of one number of nodes: a minute or two
AT_ONCE = 10  # trials between looks
FIRST_STEPS = (2, 5, AT_ONCE)  # trials at the first looks
MOST_CURVE = 4000  # points of a curve over rounds


def possible(wish: Wish) -> tuple[list[Model], list[int]]:
    """The models that can be simulated here, and the numbers of nodes that cannot."""
    models: list[Model] = []
    left_out: list[Model] = []
    for K in wish.nodes:
        model = model_of(wish, K)
        (models if _fits(model, wish) else left_out).append(model)
    if not models:
        raise ParameterError(
            f"p={wish.setting.n_features}, n={wish.setting.n_samples}, T={wish.setting.n_tasks}: "
            "too large to be simulated here; lower them, or ask for fewer trials"
        )
    return models, [model.n_nodes for model in left_out]


def model_of(wish: Wish, K: int) -> Model:
    """One number of nodes."""
    setting = wish.setting
    return make_model(
        setting.n_tasks,
        setting.n_samples,
        even_sizes(setting.n_features, K),
        n_shared=int(setting.n_shared),
        noise_var=setting.noise_var,
        n_rounds=setting.n_rounds,
    )


def _fits(model: Model, wish: Wish) -> bool:
    n, p, T, K = model.n_samples[0], model.n_features, model.n_tasks, model.n_nodes
    few = min(n, p)
    if wish.kind == "points" and span.fits(model):
        entries, each = K * n * n, K * n**3
    else:
        entries, each = few * p, few * few * (p + K)
    if wish.kind == "rounds" and T * model.n_rounds > MOST_CURVE:
        return False
    return entries <= MOST_ENTRIES and float(each) * T * wish.trials <= MOST_WORK


def simulated(wish: Wish) -> Iterator[dict[str, Any]]:
    """How far it is; and after some trials of all models, their means and standard errors so far.

    Results always are of equally many trials of every model, and the steps do not depend on how
    many are asked for: who stops after 20 trials sees what 20 asked for would be, to the last bit.
    """
    models, _ = possible(wish)
    device, groups = find_device(None), _together(wish, models)
    values: dict[int, list[Array]] = {model.n_nodes: [] for model in models}
    total, done = len(models) * wish.trials, 0
    for step in _steps(wish.trials):
        for group in groups:
            for batch in _batches(group[0], step, len(group), device):
                for model, errors in zip(group, _trials(wish, group, batch, device), strict=True):
                    values[model.n_nodes].append(errors)
                done += len(batch) * len(group)
                yield {"done": done, "total": total, "results": []}
        results = [_result(K, np.concatenate(own)) for K, own in sorted(values.items())]
        yield {"done": done, "total": total, "results": results}


def _result(K: int, trials: Array) -> dict[str, Any]:
    stderr = trials.std(axis=0, ddof=1) / len(trials) ** 0.5
    return {"n_nodes": K, "mean": trials.mean(axis=0), "stderr": stderr, "trials": len(trials)}


def _steps(trials: int) -> Iterator[range]:
    """The first trials in small steps, because people watch; a standard error needs two."""
    ends = [*FIRST_STEPS, *range(2 * AT_ONCE, trials, AT_ONCE)]
    edges = [0, *(end for end in ends if end < trials), trials]
    return (range(a, b) for a, b in pairwise(edges))


def _together(wish: Wish, models: list[Model]) -> list[list[Model]]:
    """Models that one draw serves: all but those of very wide blocks, which are drawn otherwise."""
    alone = [model for model in models if wish.kind == "points" and span.fits(model)]
    rest = [model for model in models if model not in alone]
    return [[model] for model in alone] + ([rest] if rest else [])


def _batches(model: Model, step: range, settings: int, device: Device) -> Iterator[range]:
    """As many trials of a step at once as there is memory for."""
    for batch in batched(model, len(step), settings, device):
        yield step[batch.start : batch.stop]


def _trials(wish: Wish, models: list[Model], batch: range, device: Device) -> list[Array]:
    """Errors of these trials, of every model: after every task, or after every round."""
    draws = device.draws(wish.seed, batch)
    if wish.kind == "rounds":
        return learning_curves(models, 1, draws, device)[0]
    if span.fits(models[0]):
        return [models[0].error(span.by_span(models[0], draws, device))]
    found = by_rows(models, draws, device)
    return [model.error(apart) for model, apart in zip(models, found, strict=True)]


def main(text: str, parent: int | None = None) -> None:
    """Simulate, and print."""
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    for line in simulated(Wish.read(json.loads(text))):
        print(json.dumps(defined(line)), flush=True)


def _end_with(parent: int) -> None:
    """Nobody listens any more: end in the middle of whatever it is."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
