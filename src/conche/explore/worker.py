"""Simulates one wish and prints a line of JSON after every batch of trials; a process of its own.

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
AT_ONCE = 10  # trials of a batch
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
            "too large to be simulated from this page; lower them, or ask for fewer trials"
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
    """After every batch: how far it is, and the means and standard errors of some models so far."""
    models, _ = possible(wish)
    device = find_device(None)
    total, done = len(models) * wish.trials, 0
    for together in _together(wish, models):
        values: list[list[Array]] = [[] for _ in together]
        for batch in _batches(together[0], wish.trials, len(together), device):
            for own, found in zip(values, _trials(wish, together, batch, device), strict=True):
                own.append(found)
            done += len(batch) * len(together)
            line: dict[str, Any] = {"done": done, "total": total, "results": []}
            for model, own in zip(together, values, strict=True):
                trials = np.concatenate(own)
                if len(trials) > 1:
                    stderr = trials.std(axis=0, ddof=1) / len(trials) ** 0.5
                    found = {"mean": trials.mean(axis=0), "stderr": stderr, "trials": len(trials)}
                    line["results"].append({"n_nodes": model.n_nodes, **found})
            yield line


def _together(wish: Wish, models: list[Model]) -> list[list[Model]]:
    """Models that one draw serves: all but those of very wide blocks, which are drawn otherwise."""
    alone = [model for model in models if wish.kind == "points" and span.fits(model)]
    rest = [model for model in models if model not in alone]
    return [[model] for model in alone] + ([rest] if rest else [])


def _batches(model: Model, trials: int, settings: int, device: Device) -> Iterator[range]:
    """As `batched` has them, but small ones: people watch."""
    for batch in batched(model, trials, settings, device):
        for start in range(batch.start, batch.stop, AT_ONCE):
            yield range(start, min(start + AT_ONCE, batch.stop))


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
