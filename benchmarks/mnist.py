"""Class-incremental MNIST: `python -m benchmarks.mnist --data FOLDER`, which holds mnist/.

Two new digits a task, one pass, 5,000 cosine features on 8 nodes. Prints the accuracy, and seconds
of the sums and of the rest (the ridge and the weights, found when they are read), as ratios to
`dsyrk` of the same rows and to one Cholesky factor. Exit status 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

import conche
from conche.common.arrays import Array

from .gpu import images

COLUMNS, NODES = 5000, 8
LEAST = 0.970  # accuracy
SUMS, FACTORS = 1.3, 8.0  # times dsyrk, times dpotrf


class Found(NamedTuple):
    accuracy: float
    sums: float
    rest: float
    dsyrk: float
    dpotrf: float

    @property
    def missed(self) -> bool:
        slow = self.sums > SUMS * self.dsyrk or self.rest > FACTORS * self.dpotrf
        return slow or self.accuracy < LEAST


def measured(folder: Path, columns: int = COLUMNS, rows: int = 60_000) -> Found:
    """Of the first ``rows`` images."""
    (X, y), (X_test, y_test) = (images(folder, part) for part in ("train", "t10k"))
    X, y = X[:rows], y[:rows]
    features = conche.CosineFeatures(columns, seed=1).fit(X[y < 2])
    model = conche.ConcheClassifier(NODES)
    gram = np.zeros((columns, columns), order="F")
    sums = floor = 0.0
    for first in range(0, 10, 2):
        some = (y == first) | (y == first + 1)
        A = features.transform(X[some])
        seconds, gram = timed(partial(added, A, gram))
        floor += seconds
        sums += timed(partial(model.partial_fit, A, y[some]))[0]
    rest, _ = timed(lambda: model.coef_)
    gram.flat[:: columns + 1] += 1.0
    factor, _ = timed(lambda: lapack.dpotrf(gram, lower=1, overwrite_a=1, clean=0))
    accuracy = float(np.mean(model.predict(features.transform(X_test)) == y_test))
    return Found(accuracy, sums, rest, floor, factor)


def added(A: Array, gram: Array) -> Array:
    return np.asarray(blas.dsyrk(1.0, A.T, beta=1.0, c=gram, lower=1, overwrite_c=1))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    clock = time.perf_counter()
    answer = call()
    return time.perf_counter() - clock, answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with mnist/")
    found = measured(parser.parse_args().data / "mnist")
    print("| what | measured | against | ratio | limit |\n|---|---|---|---|---|")
    print(f"| accuracy | {found.accuracy:.4f} | | | >= {LEAST} |")
    for what, ours, name, floor, limit in (
        ("sums", found.sums, "dsyrk", found.dsyrk, SUMS),
        ("ridge and weights", found.rest, "dpotrf", found.dpotrf, FACTORS),
    ):
        print(f"| {what} | {ours:.1f} s | {name} {floor:.1f} s | {ours / floor:.2f} | <= {limit} |")
    return int(found.missed)


if __name__ == "__main__":
    sys.exit(main())
