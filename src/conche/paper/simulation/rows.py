"""Trials from min(n, p) rows a task: exact in distribution, and one draw for many settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...common.arrays import Array
from .blocks import Blocks, residuals, update
from .draws import Unknowns, distances, reduced_task
from .model import Generators, Model


def by_rows(models: Sequence[Model], rngs: Generators) -> list[Array]:
    """|w_t - w*_s|^2 (trials x T x T) of every model; all must have the same shape."""
    first = models[0]
    unknowns = Unknowns(first, rngs)
    W = {n_shared: unknowns.of(n_shared) for n_shared in {m.n_shared for m in models}}
    groups = _groups(models)
    estimates = [np.zeros((len(rngs), first.n_features, len(group))) for group in groups]
    out = [np.empty((len(rngs), first.n_tasks, first.n_tasks)) for _ in models]
    for t in range(first.n_tasks):
        task = reduced_task(first, t, rngs)
        blocks = Blocks(task.R)
        for group, w in zip(groups, estimates, strict=True):
            members = [models[i] for i in group]
            truth = np.stack([W[m.n_shared][:, t] for m in members], axis=-1)
            level = np.sqrt([m.noise_var[t] for m in members])
            g = task.R @ (truth - w) + task.noise[..., None] * level
            w += update(blocks, members[0].partition, members[0].n_rounds, g)
            for column, i in enumerate(group):
                apart = distances(w[..., column], W[models[i].n_shared], first.correlation)
                out[i][:, t] = apart
    return out


def _groups(models: Sequence[Model]) -> list[list[int]]:
    """Models that differ only in their unknowns and noise learn together; coarse blocks first."""
    kinds: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for i, model in enumerate(models):
        kinds.setdefault((model.partition, model.n_rounds), []).append(i)
    return [kinds[key] for key in sorted(kinds, key=lambda key: len(key[0]))]


def offline_by_rows(models: Sequence[Model], horizons: Sequence[int], rngs: Generators) -> Array:
    """Error of least squares on the first h tasks at once, over those tasks.

    models x trials x horizons; the models must have the same shape. Minimum norm where there are
    fewer samples than columns.
    """
    first, B = models[0], len(rngs)
    p = first.n_features
    unknowns = Unknowns(first, rngs)
    W = [unknowns.of(m.n_shared) for m in models]
    H, b = np.zeros((B, p, p)), np.zeros((B, p, len(models)))
    rows: list[tuple[Array, Array]] = []
    out = np.empty((len(models), B, len(horizons)))
    for t in range(max(horizons)):
        task = reduced_task(first, t, rngs)
        truth = np.stack([w[:, t] for w in W], axis=-1)
        y = task.R @ truth + task.noise[..., None] * np.sqrt([m.noise_var[t] for m in models])
        Rt = np.swapaxes(task.R, -1, -2)
        H, b = H + Rt @ task.R, b + Rt @ y
        if rows or t == 0:  # kept only while they are fewer than the columns
            rows.append((task.R, y))
        if sum(R.shape[1] for R, _ in rows) > p:
            rows = []
        if t + 1 in horizons:
            if rows:
                stacked, right = (np.concatenate(part, axis=1) for part in zip(*rows, strict=True))
                best = Blocks(stacked).solve([p], right)
            else:
                best = np.linalg.solve(H, b)
            for i, model in enumerate(models):
                apart = distances(best[..., i], W[i][:, : t + 1], first.correlation)
                error = apart.mean(axis=-1) + np.mean(model.noise_var[: t + 1])
                out[i, :, list(horizons).index(t + 1)] = error
    return out


def learning_curves(
    models: Sequence[Model], passes: int, rngs: Generators
) -> tuple[list[Array], list[Array]]:
    """Generalization and training error after every round, the tasks repeated ``passes`` times.

    Two lists, one array a model: trials x (passes T n_rounds). The generalization error is over all
    T tasks, the training error f over the tasks seen so far. All models have the same shape.
    """
    first, B, T = models[0], len(rngs), models[0].n_tasks
    unknowns = Unknowns(first, rngs)
    tasks = [reduced_task(first, t, rngs) for t in range(T)]
    G, F = [], []
    for model in models:
        W = unknowns.of(model.n_shared)
        noise = np.sqrt(model.noise_var)
        y = [
            (task.R @ W[:, t, :, None])[..., 0] + noise[t] * task.noise
            for t, task in enumerate(tasks)
        ]
        beyond = [model.noise_var[t] * task.outside for t, task in enumerate(tasks)]
        w = np.zeros((B, model.n_features, 1))
        general: list[Array] = []
        training: list[Array] = []
        for step in range(passes * T):
            t, seen = step % T, min(step + 1, T)
            path = _rounds(model, tasks[t].R, y[t], w)  # trials x p x rounds
            w = path[..., -1:]
            apart = distances(np.swapaxes(path, 1, 2), W[:, None], model.correlation)
            general.append(model.error(apart))
            fit = [
                (np.sum((y[s][..., None] - tasks[s].R @ path) ** 2, axis=1) + beyond[s][:, None])
                / (2 * model.n_samples[s])
                for s in range(seen)
            ]
            training.append(np.mean(fit, axis=0))
        G.append(np.concatenate(general, axis=1))
        F.append(np.concatenate(training, axis=1))
    return G, F


def _rounds(model: Model, R: Array, y: Array, w: Array) -> Array:
    """The estimate after each of one task's rounds."""
    blocks, K = Blocks(R), model.n_nodes
    g = y[..., None] - R @ w
    if model.n_rounds > 1:
        M = blocks.averaged_projection(model.partition)
        steps = np.concatenate(residuals(M, model.n_rounds, g), axis=-1)
        g = np.cumsum(steps, axis=-1)
    return np.asarray(w + blocks.solve(model.partition, g) / K)
