"""Trials from min(n, p) rows a task: exact in distribution, and one draw for many settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...common.arrays import Array
from ...common.device import Device, Draws
from ...common.linear import solve_positive, transposed
from .blocks import Blocks, residuals, update
from .draws import Unknowns, distances, reduced_task
from .model import Model


def by_rows(models: Sequence[Model], draws: Draws, device: Device) -> list[Array]:
    """|w_t - w*_s|^2 (trials x T x T) of every model; all must have the same shape."""
    first, xp = models[0], device.xp
    unknowns = Unknowns(first, draws, device)
    W = {n_shared: unknowns.of(n_shared) for n_shared in {m.n_shared for m in models}}
    groups = _groups(models)
    shape = len(draws), first.n_features
    estimates = [device.put(np.zeros((*shape, len(group)))) for group in groups]
    out: list[list[Array]] = [[] for _ in models]
    for t in range(first.n_tasks):
        task = reduced_task(first, t, draws, device)
        blocks = Blocks(task.R, task.triangular)
        for place, group in enumerate(groups):
            members, w = [models[i] for i in group], estimates[place]
            truth = xp.stack([W[m.n_shared][:, t, :] for m in members], axis=-1)
            level = device.put(np.sqrt([m.noise_var[t] for m in members]))
            g = task.R @ (truth - w) + task.noise[..., None] * level
            w = w + update(blocks, members[0].partition, members[0].n_rounds, g)
            estimates[place] = w
            for column, i in enumerate(group):
                apart = distances(w[..., column], W[models[i].n_shared], first.correlation)
                out[i].append(apart)
    return [device.fetch(xp.stack(each, axis=1)) for each in out]


def _groups(models: Sequence[Model]) -> list[list[int]]:
    """Models that differ only in their unknowns and noise learn together; coarse blocks first."""
    kinds: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for i, model in enumerate(models):
        kinds.setdefault((model.partition, model.n_rounds), []).append(i)
    return [kinds[key] for key in sorted(kinds, key=lambda key: len(key[0]))]


def offline_by_rows(
    models: Sequence[Model], horizons: Sequence[int], draws: Draws, device: Device
) -> Array:
    """Error of least squares on the first h tasks at once, over those tasks.

    models x trials x horizons; the models must have the same shape. Minimum norm where there are
    fewer samples than columns.
    """
    first, xp = models[0], device.xp
    p = first.n_features
    unknowns = Unknowns(first, draws, device)
    W = [unknowns.of(m.n_shared) for m in models]
    H: Array = 0.0
    b: Array = 0.0
    rows: list[tuple[Array, Array]] = []
    out = np.empty((len(models), len(draws), len(horizons)))
    for t in range(max(horizons)):
        task = reduced_task(first, t, draws, device)
        truth = xp.stack([w[:, t, :] for w in W], axis=-1)
        level = device.put(np.sqrt([m.noise_var[t] for m in models]))
        y = task.R @ truth + task.noise[..., None] * level
        Rt = transposed(task.R)
        H, b = H + Rt @ task.R, b + Rt @ y
        if rows or t == 0:  # kept only while they are fewer than the columns
            rows.append((task.R, y))
        if sum(R.shape[1] for R, _ in rows) > p:
            rows = []
        if t + 1 in horizons:
            if rows:
                stacked, right = (xp.concat(part, axis=1) for part in zip(*rows, strict=True))
                best = Blocks(stacked).solve([p], right)
            else:
                best = solve_positive(H, b)
            for i, model in enumerate(models):
                apart = distances(best[..., i], W[i][:, : t + 1, :], first.correlation)
                error = device.fetch(xp.mean(apart, axis=-1)) + np.mean(model.noise_var[: t + 1])
                out[i, :, list(horizons).index(t + 1)] = error
    return out


def learning_curves(
    models: Sequence[Model], passes: int, draws: Draws, device: Device
) -> tuple[list[Array], list[Array]]:
    """Generalization and training error after every round, the tasks repeated ``passes`` times.

    Two lists, one array a model: trials x (passes T n_rounds). The generalization error is over all
    T tasks, the training error f over the tasks seen so far. All models have the same shape.
    """
    first, xp, T = models[0], device.xp, models[0].n_tasks
    unknowns = Unknowns(first, draws, device)
    tasks = [reduced_task(first, t, draws, device) for t in range(T)]
    G, F = [], []
    for model in models:
        W = unknowns.of(model.n_shared)
        noise = np.sqrt(model.noise_var).tolist()
        y = [
            (task.R @ W[:, t, :, None])[..., 0] + noise[t] * task.noise
            for t, task in enumerate(tasks)
        ]
        beyond = [model.noise_var[t] * task.outside for t, task in enumerate(tasks)]
        w = device.put(np.zeros((len(draws), model.n_features, 1)))
        general: list[Array] = []
        training: list[Array] = []
        for step in range(passes * T):
            t, seen = step % T, min(step + 1, T)
            path = _rounds(model, tasks[t].R, y[t], w)  # trials x p x rounds
            w = path[..., -1:]
            apart = distances(transposed(path), W[:, None, ...], model.correlation)
            general.append(model.error(device.fetch(apart)))
            fit: Array = 0.0
            for s in range(seen):
                off = y[s][..., None] - tasks[s].R @ path
                squares = xp.sum(off * off, axis=1) + beyond[s][:, None]
                fit = fit + squares / (2 * model.n_samples[s])
            training.append(device.fetch(fit / seen))
        G.append(np.concatenate(general, axis=1))
        F.append(np.concatenate(training, axis=1))
    return G, F


def _rounds(model: Model, R: Array, y: Array, w: Array) -> Array:
    """The estimate after each of one task's rounds."""
    blocks, K = Blocks(R), model.n_nodes
    g = y[..., None] - R @ w
    if model.n_rounds > 1:
        M = blocks.averaged_projection(model.partition)
        steps = blocks.xp.concat(residuals(M, model.n_rounds, g), axis=-1)
        g = blocks.xp.cumulative_sum(steps, axis=-1)
    return w + blocks.solve(model.partition, g) / K
