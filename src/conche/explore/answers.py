"""What theory says, as plain data for the page: errors over nodes and over tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.arrays import Array, even_sizes
from ..common.threads import blas_threads
from ..paper.theory import Similarity, offline_error
from ..paper.theory.even import even_errors, even_radii
from ..planner import Plan, plan
from ..planner.advice import NEAR_SQUARE, candidate_nodes, candidates, least
from ..planner.plan import task_model_1
from ..planner.question import Question
from .settings import MOST_NODES, Setting

GRID = 600  # numbers of nodes at which bad sizes are looked for
MOST_SHOWN = 12  # simulated points
ROUNDING = 1e-9  # of a radius that is zero
DRAWN_NODES = 128  # at most, where moments of several rounds must be drawn


def curve_answer(setting: Setting) -> dict[str, Any]:
    """The error over the number of nodes: Algorithm 1 and offline, at once."""
    p, n, T = setting.n_features, setting.n_samples, setting.n_tasks
    rows = candidates(_question(setting), candidate_nodes(p))
    errors = {row["n_nodes"]: row["error"] for row in rows}
    alike = Similarity.shared(T, [p], setting.n_shared)
    best = least(errors)
    return {
        "nodes": list(errors),
        "errors": list(errors.values()),
        "radii": [_but_for_rounding(row["spectral_radius"]) for row in rows],
        "warnings": [row["warning"] for row in rows],
        "offline": float(offline_error(alike, n, setting.noise_var)[-1]),
        "best": {"n_nodes": best, "error": errors[best]},
        "bands": bands(setting),
        "simulate": points(list(errors)),
        "command": setting.csv_command("error-over-nodes"),
    }


def advice_answer(setting: Setting) -> dict[str, Any]:
    """The Conche method beside it, what both keep and send, and the advice."""
    advice = _plan(setting)
    memory = advice.memory
    return {
        "conche": memory.error,
        "rank": memory.rank,
        "text": advice.text,
        "command": setting.plan_command(),
        "assumptions": advice.assumptions,
        "methods": [
            {
                "method": name,
                "nodes": row.n_nodes,
                "error": error,
                "kept_bytes": row.kept_bytes,
                "bytes": row.bytes,
                "exchanges": row.exchanges,
                "seconds": row.seconds,
            }
            for name, error, row in (
                ("Algorithm 1", advice.error, advice.rounds),
                ("Conche method", memory.error, memory),
            )
        ],
    }


def points(nodes: list[int]) -> list[int]:
    """Powers of two among them, not too many: where points are simulated."""
    few = [K for K in nodes if K & (K - 1) == 0]
    return few[:: -(-len(few) // MOST_SHOWN)]


def bands(setting: Setting) -> list[dict[str, Any]]:
    """From which to which number of nodes sizes are bad: nearly square blocks, or errors that grow
    with every task."""
    p, n = setting.n_features, setting.n_samples
    most = min(p, MOST_NODES)
    nodes = np.unique(np.geomspace(1, most, GRID).round().astype(int)) if most > 1 else np.ones(1)
    sizes = p / nodes
    near = np.abs(sizes - n) < np.maximum(NEAR_SQUARE * n, 1.5)
    with np.errstate(over="ignore", invalid="ignore"):
        grows = even_radii(p, nodes.astype(int).tolist(), n) >= 1
    return [
        {"kind": kind, "from": int(nodes[a]), "to": int(nodes[b])}
        for kind, bad in (("unstable", grows), ("near-square", near))
        for a, b in _runs(bad)
    ]


def _runs(bad: Array) -> list[tuple[int, int]]:
    """First and last place of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def rounds_answer(setting: Setting) -> dict[str, Any]:
    """Algorithm 1 with several rounds a task, over the number of nodes.

    Where blocks have more columns than a task has samples, it is the closed form; elsewhere moments
    are drawn, for up to `DRAWN_NODES` nodes.
    """
    p, question = setting.n_features, _question(setting)
    nodes = [K for K in (1 << i for i in range(17)) if p >= K and _can(setting, K)]
    with blas_threads(1):
        errors = [question.error(even_sizes(p, K), n_rounds=setting.n_rounds) for K in nodes]
        found = [_several(setting, question, K) for K in nodes]
    verdicts = [each["verdict"] for each in found]
    return {"nodes": nodes, "errors": errors, "verdicts": verdicts, "rounds": setting.n_rounds}


def tasks_answer(setting: Setting, nodes: list[int]) -> dict[str, Any]:
    """The error after every task on these numbers of nodes; and of offline solutions."""
    p, n, T = setting.n_features, setting.n_samples, setting.n_tasks
    ns, question = np.full(T, n), _question(setting)
    if setting.n_rounds == 1:
        curves = one_round(setting, nodes)
    else:
        with blas_threads(1):
            curves = [several_rounds(setting, question, K) for K in nodes]
    alike = Similarity.shared(T, [p], setting.n_shared)
    advice = _plan(setting)
    ridge = offline_error(alike, ns, setting.noise_var, max(advice.memory.damping, 1e-12))
    return {
        "tasks": list(range(1, T + 1)),
        "curves": curves,
        "offline": offline_error(alike, ns, setting.noise_var),
        "conche": ridge * (1 + advice.memory.loss),
        "damping": advice.memory.damping,
        "command": setting.csv_command("error-over-tasks", nodes),
        "by_round": setting.csv_command("learning-curves"),
    }


def one_round(setting: Setting, nodes: list[int]) -> list[dict[str, Any]]:
    """The errors after every task on each of these numbers of nodes, and whether they settle."""
    p, n = setting.n_features, setting.n_samples
    ns = np.full(setting.n_tasks, n)
    found = even_errors(p, nodes, ns, setting.n_shared, setting.noise_var)
    radii = even_radii(p, nodes, n).tolist()
    return [
        {"n_nodes": K, "errors": errors, **verdict(radius)}
        for K, errors, radius in zip(nodes, found, radii, strict=True)
    ]


def several_rounds(setting: Setting, question: Question, K: int) -> dict[str, Any]:
    """The same with several rounds a task; without errors where drawing would take too long."""
    if not _can(setting, K):
        errors = np.full(setting.n_tasks, np.nan)
        return {"n_nodes": K, "errors": errors, "radius": None, "verdict": "unknown"}
    errors = question.curve(even_sizes(setting.n_features, K), n_rounds=setting.n_rounds)
    return {"n_nodes": K, "errors": errors, **_several(setting, question, K)}


def _several(setting: Setting, question: Question, K: int) -> dict[str, Any]:
    return verdict(*question.radius(even_sizes(setting.n_features, K), setting.n_rounds))


def verdict(radius: float, off: float = 0.0) -> dict[str, Any]:
    """A spectral radius, and what it says of endless tasks; one that may be ``off`` by that much
    says nothing close to 1."""
    if not np.isfinite(radius):
        said = "unbounded"
    elif abs(radius - 1) < off:
        said = "edge"
    else:
        said = "grows" if radius >= 1 else "settles"
    return {"radius": _but_for_rounding(radius), "drawn": off > 0, "verdict": said}


def _but_for_rounding(radius: float) -> float:
    return radius if radius > ROUNDING else 0.0


def _plan(setting: Setting) -> Plan:
    with blas_threads(1):  # small matrices: on a busy machine threads would wait for each other
        return plan(
            setting.n_features,
            setting.n_samples,
            setting.n_tasks,
            setting.n_shared,
            setting.noise_var,
        )


def _question(setting: Setting) -> Question:
    samples = np.full(setting.n_tasks, setting.n_samples)
    return task_model_1(setting.n_features, samples, setting.n_shared, setting.noise_var, 1.0, 0.0)


def _can(setting: Setting, K: int) -> bool:
    """Whether errors of several rounds are had in little time."""
    return K <= DRAWN_NODES or setting.n_features // K > setting.n_samples + 1
