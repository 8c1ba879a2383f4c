"""What the paper says about learning curves and digits: Figs. 7, 8, 11 and 12."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....common.arrays import Array
from ..findings import Finding, below, setting, simulated
from ..work import Figure


def _ends(figure: Figure, panel: str, curve: str) -> tuple[Array, int]:
    """The error at the end of every task, and how many tasks there are."""
    rounds = int(setting(figure, "n_rounds")[0])
    return simulated(figure, panel, curve)[rounds - 1 :: rounds], int(setting(figure, "n_tasks")[0])


def fig7(figure: Figure) -> Iterator[Finding]:
    """Learning curves, blocks wider than the task (Section IV-C)."""
    rounds, p = int(setting(figure, "n_rounds")[0]), setting(figure, "n_features")[0]
    for panel, error in (("a", "generalization"), ("b", "training")):
        moved = 0.0
        for name in figure.curves(panel):
            y = simulated(figure, panel, name).reshape(-1, rounds)
            scale = np.maximum(y[:, :1], 1e-6 * y.max())
            moved = max(moved, float(np.max(np.abs(y - y[:, :1]) / scale)))
        yield Finding(
            f"({panel}) one round is enough: the {error} error is constant between tasks (Lemma 2)",
            moved < 1e-6,
            f"largest relative change {moved:.1e}",
        )
    for shared in (s for s in setting(figure, "n_shared") if s <= p // 2):
        ends, T = _ends(figure, "a", f"p_S={shared}")
        if shared < p // 2:
            yield Finding(
                f"(a) p_S = {shared}: low similarity, the error grows with each task",
                bool(np.all(np.diff(ends[:T]) > 0)),
                f"{ends[0]:.3f} to {ends[T - 1]:.3f}",
            )
        # at p_S = p/2 Theorem 1 has the first pass flat (1.009 to 1.003 at the paper's sizes)
        yield below(
            ends[T - 1], ends[-1], f"(a) p_S = {shared}: and with the repetitions of the tasks"
        )
    for name in figure.curves("b"):
        ends, T = _ends(figure, "b", name)
        passes = ends[T - 1 :: T]
        yield Finding(
            f"(b) {name}: the training error falls once all tasks have been seen",
            bool(np.all(np.diff(passes) < 0)),
            " -> ".join(f"{value:.3g}" for value in passes),
        )


def fig8(figure: Figure) -> Iterator[Finding]:
    """Learning curves, more samples than unknowns (Section IV-C)."""
    rounds = int(setting(figure, "n_rounds")[0])
    shared = sorted(setting(figure, "n_shared"))
    y = simulated(figure, "a", f"p_S={shared[0]}").reshape(-1, rounds)
    moved = float(np.median(np.abs(y[1:, -1] / y[1:, 0] - 1)))
    yield Finding(
        "(a) there is a transient within each task (p_S = 0)",
        moved > 0.05,
        f"the error changes by {100 * moved:.0f} % between first and last round",
    )
    later = []
    for panel in "ab":
        for s in shared:
            ends, T = _ends(figure, panel, f"p_S={s}")
            passes = ends[T:].reshape(-1, T).mean(axis=1)
            if panel == "a":
                later.append(float(passes.mean()))
            drift = abs(passes[-1] / passes[0] - 1)
            yield Finding(
                f"({panel}) p_S = {s}: after all tasks the error fluctuates around a fixed mean",
                bool(drift < 0.02),
                f"mean of a pass changes by {100 * drift:.2g} %",
            )
    yield Finding(
        "(a) that mean improves as p_S grows",
        bool(np.all(np.diff(later) < 0)),
        " > ".join(f"{value:.3g}" for value in later),
    )


def digits(figure: Figure) -> Iterator[Finding]:
    """Odd/even digits, either loss (Section IV-F)."""
    last = {name: simulated(figure, "a", name)[-1] for name in figure.curves("a")}
    worst = max(last, key=lambda name: last[name])
    yield Finding(
        "every task ends far below the 0.5 of chance (0.25)",
        bool(last[worst] < 0.25),
        f"worst is {worst} with {last[worst]:.3f}",
    )
    names = list(last)
    if figure.note:  # the embedded digits are others
        return
    yield below(last[names[0]], last[names[-1]], "task 0 (0/1) is easier than task 4 (8/9)")
