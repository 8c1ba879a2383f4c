"""Simulates one wish and prints a line of JSON after every batch of trials; a process of its own.

``python -m conche.explore.worker '{"p": 128, ...}' PARENT``. It can be stopped at any moment, and
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
from ..common.device import find_device
from ..common.plain import defined
from ..errors import ParameterError
from ..paper.simulation import span
from ..paper.simulation.model import Model, make_model
from ..paper.simulation.rows import learning_curves
from ..paper.simulation.simulate import batched, choose, run_batch
from .settings import Wish

MOST_ENTRIES = 1.2e7  # of one trial's largest matrix
MOST_WORK = 4e12  # products in all trials of one number of nodes: a minute or two
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
    """After every batch: how far it is, and the mean and standard error of one model so far."""
    models, _ = possible(wish)
    device = find_device(None)
    total = len(models) * wish.trials
    done = 0
    for model in models:
        values: list[Array] = []
        for batch in batched(model, wish.trials, 1, device):
            values.append(_trials(wish, model, batch))
            done += len(batch)
            trials = np.concatenate(values)
            line: dict[str, Any] = {"done": done, "total": total}
            if len(trials) > 1:
                stderr = trials.std(axis=0, ddof=1) / len(trials) ** 0.5
                own = {"mean": trials.mean(axis=0), "stderr": stderr, "trials": len(trials)}
                line["result"] = {"n_nodes": model.n_nodes, **own}
            yield line


def _trials(wish: Wish, model: Model, batch: range) -> Array:
    """Errors of these trials: after every task, or after every round."""
    if wish.kind == "rounds":
        device = find_device(None)
        (G,), _ = learning_curves([model], 1, device.draws(wish.seed, batch), device)
        return G
    return model.error(run_batch(choose(model, "auto"), model, wish.seed, batch, None))


def main(text: str, parent: int) -> None:
    """Simulate, and print."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    for line in simulated(Wish.read(json.loads(text))):
        print(json.dumps(defined(line)), flush=True)


def _end_with(parent: int) -> None:
    """Nobody listens any more: end in the middle of whatever it is."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
