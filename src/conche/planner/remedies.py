"""What to do where the number of nodes is given: the remedies of the paper's Section V."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common.arrays import even_sizes
from ..paper.theory import spectral_radius
from .question import Candidate, Question, Remedy

MANY = 128  # nodes: beyond, remedies that need moments to be drawn are left out
MOST_COLUMNS = 512  # and beyond so many, where no smaller stream will do


def find_remedies(question: Question, chosen: Candidate, table: list[Candidate]) -> list[Remedy]:
    """What can be done with at most K nodes, best first, each with its predicted error.

    ``chosen`` is the row of ``table`` for the given number of nodes.
    """
    K, even, n = chosen["n_nodes"], chosen["partition"], question.n
    tried: list[Remedy] = []

    def attempt(what: str, sizes: list[int], rounds: int = 1, damping: float | None = None) -> None:
        error = question.error(sizes, n_rounds=rounds, damping=damping)
        tried.append(
            Remedy(what=what, error=error, partition=sizes, n_rounds=rounds, damping=damping)
        )

    fewer = [row for row in table if row["n_nodes"] < K]
    if fewer:
        best = min(fewer, key=lambda row: row["error"])
        attempt(f"use {best['n_nodes']} of the {K} nodes", best["partition"])
    unequal = _two_sizes(question, K)
    if unequal is not None:
        attempt(f"unequal blocks: {_describe(unequal)}", unequal)
    if len(even) <= MANY and (not question.drifts or question.n_features <= MOST_COLUMNS):
        # Lemma 2: with wide blocks one round is all there is. Near n the moments' variance is
        # infinite, and a sampled error means nothing.
        if any(s < n for s in even) and min(abs(n - s) for s in even) > 4:
            for rounds in (2, 5, 20):
                attempt(f"{rounds} rounds a task", even, rounds=rounds)
        for damping in (0.1, 1.0, 10.0, 100.0):
            attempt(f"solver=Damped(damping={damping:g})", even, damping=damping)
    better = [r for r in tried if r["error"] < chosen["error"] and _stable(question, r)]
    return sorted(better, key=lambda remedy: remedy["error"])


def _stable(question: Question, remedy: Remedy) -> bool:
    """An error that would grow with every further task is no remedy, even if it is small yet."""
    n, rounds, damping = question.n, remedy["n_rounds"], remedy["damping"]
    sizes: Sequence[int] = remedy["partition"]
    if rounds > 1 or damping is not None:
        sizes, ns = question.reduced(sizes, np.array([n]))
        n = int(ns[0])
    return spectral_radius(n, sizes, rounds, damping, question.draws(sizes)) < 1


def _two_sizes(question: Question, K: int) -> list[int] | None:
    """The best partition with two sizes: some nodes take large blocks, the rest small ones."""
    if K == 1 or K > 512:
        return None
    p, best, least = question.n_features, None, np.inf
    for large in sorted({int(x) for x in np.linspace(1, K - 1, 8)}):
        for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
            rest = round((1 - share) * p)
            if rest < K - large or p - rest < large:
                continue
            sizes = even_sizes(p - rest, large) + even_sizes(rest, K - large)
            error = question.error(sizes)
            if error < least:
                best, least = sizes, error
    return best


def _describe(sizes: Sequence[int]) -> str:
    """How many nodes have blocks of which size, the largest first: 2 of 18, 1 of 4."""
    kinds, counts = np.unique(sizes, return_counts=True)
    return ", ".join(f"{c} of {k}" for k, c in zip(kinds[::-1], counts[::-1], strict=True))
