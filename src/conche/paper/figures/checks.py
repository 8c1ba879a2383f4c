"""Whether a figure shows what it should: simulation beside theory, and the paper's own words."""

from __future__ import annotations

import numpy as np

from .findings import Finding
from .statements import PRINTED, STATEMENTS
from .work import Figure

ALLOWED = 0.01  # of the points with theory may lie beyond 4 standard errors


def check(figure: Figure, scale: str) -> list[Finding]:
    """Theory for any spec; the paper's statements and printed numbers for its own figures.

    ``scale`` is that of the spec: the printed numbers are for the paper's own sizes.
    """
    out = [_finite(figure), _against_theory(figure)]
    name = figure.spec.name
    if figure.spec.official:
        out += STATEMENTS[name](figure)
    if figure.spec.official and name in PRINTED:
        if scale == "paper":
            out += PRINTED[name](figure)
        else:
            out.append(Finding("the paper's printed numbers", None, "at --scale paper only"))
    return out


def _finite(figure: Figure) -> Finding:
    bad = int(np.sum(~np.isfinite(figure.simulated)))
    return Finding("every point is finite", bad == 0, f"{bad} of {len(figure.rows)} are not")


def _against_theory(figure: Figure) -> Finding:
    statement = "simulation agrees with theory"
    points = [
        (row.theory, mean, stderr)
        for row, mean, stderr in zip(figure.rows, figure.simulated, figure.stderr, strict=True)
        if row.theory is not None and not row.heavy
    ]
    heavy = sum(row.theory is not None and row.heavy for row in figure.rows)
    aside = f"; {heavy} left out, |n_t - p_k| <= 4" if heavy else ""
    if not points:
        return Finding(statement, None, "no closed form applies here" + aside)
    theory, mean, stderr = np.array(points).T
    rounding = 1e-12 * np.maximum(1, np.abs(theory))  # without noise both may be zero
    apart = np.maximum(np.abs(mean - theory) - rounding, 0)
    beyond = int(np.sum(~(apart <= 4 * stderr)))
    worst = np.max(apart / np.maximum(stderr, 1e-300))
    detail = (
        f"{beyond} of {len(points)} points beyond 4 standard errors, the farthest at {worst:.1f}"
    )
    return Finding(statement, beyond <= ALLOWED * len(points), detail + aside)
