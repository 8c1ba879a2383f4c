"""
Split MNIST, beside other continual learners
============================================

Split MNIST, class-incremental: two new classes a task, one pass, all ten told apart at the end::

    python examples/class_incremental.py                    # scikit-learn's small digits, seconds
    python examples/class_incremental.py --data MNIST       # the four idx files, half an hour
    python examples/class_incremental.py --data MNIST --features 2000 --nodes 8

Prints a table in Markdown and writes two plots: accuracy over the tasks, and who is mistaken for
whom. Beside Conche, in the same run: streaming LDA, SGD, a network that is only ever fine-tuned,
and ridge regression on all samples at once. No method here stores a sample.
"""

# sphinx_gallery_thumbnail_path = 'figures/class_incremental.png'

from __future__ import annotations

import argparse
import io
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

import conche
from conche.common.arrays import Array
from conche.common.atomic import write_atomically
from conche.tasks import read_idx

# accuracy after the last of five tasks, and samples stored; where the numbers are from
PUBLISHED = [
    ("EWC, SI (network)", 0.1995, 0, "van de Ven et al. 2021, arXiv 2104.10093"),
    ("LwF (network)", 0.242, 0, "van de Ven et al. 2021; Hsu et al. 2018"),
    ("DGR (network and generator)", 0.913, 0, "van de Ven et al. 2021"),
    ("iCaRL (network)", 0.946, 2000, "van de Ven and Tolias 2019, arXiv 1904.07734"),
    ("GDumb (network)", 0.919, 500, "Prabhu et al. 2020"),
    ("GDumb (network)", 0.978, 4400, "Prabhu et al. 2020"),
]


class Data(NamedTuple):
    """Inputs between 0 and 1 and labels, to train on and to test with."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def task(self, t: int) -> tuple[Array, Array]:
        """The samples of two classes."""
        rows = self.y // 2 == t
        return self.X[rows], self.y[rows]

    def seen(self, t: int) -> tuple[Array, Array]:
        """Test samples of all classes up to that task."""
        rows = self.y_test // 2 <= t
        return self.X_test[rows], self.y_test[rows]


class Row(NamedTuple):
    """One method's line of the table."""

    name: str
    accuracy: list[float]  # after every task, over the classes so far
    kept: int  # bytes
    seconds: float
    predicted: Array  # of all test samples, at the end


class Method(NamedTuple):
    """How a method is named, made, taught a task, and how many bytes it keeps."""

    name: str
    make: Callable[[], Any]
    teach: Callable[[Any, Array, Array], Any]
    kept: Callable[[Any], int]


def read(folder: Path | None) -> Data:
    """MNIST, or what looks like it, from its four files; without a folder, the small digits."""
    if folder is None:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = (X[order] / 16).astype(np.float32), y[order]
        return Data(X[:1200], y[:1200], X[1200:], y[1200:])
    parts: list[Array] = []
    for part in ("train", "t10k"):
        images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
        parts.append((images.reshape(len(images), -1) / 255).astype(np.float32))
        parts.append(read_idx(folder / f"{part}-labels-idx1-ubyte.gz").astype(int))
    return Data(*parts)


class StreamingLDA:
    """Class means and one covariance, updated with every batch (Hayes and Kanan 2020)."""

    def __init__(self, features: Any = None, shrinkage: float = 1e-2):
        self.features, self.shrinkage = features, shrinkage
        self.counts, self.means = np.zeros(10), np.zeros((10, 0))
        self.scatter: Array = np.zeros((0, 0))

    def partial_fit(self, X: Array, y: Array) -> StreamingLDA:
        A = self._inputs(X)
        if not self.scatter.size:
            self.means, self.scatter = np.zeros((10, A.shape[1])), np.zeros((A.shape[1],) * 2)
        for label in np.unique(y):
            own = A[y == label]
            total = self.counts[label] + len(own)
            gap = own.mean(axis=0) - self.means[label]
            centred = own - own.mean(axis=0)
            share = self.counts[label] * len(own) / total
            self.scatter += centred.T @ centred + share * np.outer(gap, gap)
            self.means[label] += gap * len(own) / total
            self.counts[label] = total
        return self

    def predict(self, X: Array) -> Array:
        C = self.scatter / self.counts.sum()
        C = (1 - self.shrinkage) * C + self.shrinkage * np.trace(C) / len(C) * np.eye(len(C))
        seen = np.flatnonzero(self.counts)
        W = np.linalg.solve(C, self.means[seen].T)
        scores = self._inputs(X) @ W - 0.5 * np.sum(self.means[seen].T * W, axis=0)
        return np.asarray(seen[np.argmax(scores, axis=1)])

    def _inputs(self, X: Array) -> Array:
        if self.features is None:
            return X.astype(float)
        if not hasattr(self.features, "directions_"):
            self.features.fit(X)
        return np.asarray(self.features.transform(X), dtype=float)


def conche_model(n_features: int | None, n_nodes: int, **options: Any) -> Any:
    head = conche.ConcheClassifier(n_nodes, **options)
    if n_features is None:
        return conche.StreamPipeline([("head", head)])
    return conche.StreamPipeline([("features", conche.CosineFeatures(n_features)), ("head", head)])


def bytes_of(pipe: Any) -> int:
    head = pipe.steps[-1][1]
    past = head.state_.past  # of memory that loses nothing: sums
    sums = 0 if past is None else 8 * past.best.sums.numbers
    return sums + sum(a.nbytes for state in head.node_states() for a in state.to_arrays().values())


def taught(model: Any, X: Array, y: Array) -> Any:
    """A whole task at once."""
    return model.partial_fit(X, y)


def in_batches(model: Any, X: Array, y: Array) -> Any:
    """Ten samples at a time, each once, in random order."""
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), len(y) // 10):
        model.partial_fit(X[rows], y[rows], classes=np.arange(10))
    return model


def words(n_features: int | None) -> str:
    return "pixels" if n_features is None else f"{n_features:,} features"


def methods(features: list[int | None], nodes: list[int]) -> list[Method]:
    """All that learn task by task."""
    found = []
    for p in features:
        for K in nodes:
            name = f"**Conche, K = {K}**, {words(p)}"
            found.append(Method(name, partial(conche_model, p, K), taught, bytes_of))
        if p is None or p <= 2000:
            layer = None if p is None else conche.CosineFeatures(p)
            make = partial(StreamingLDA, layer)
            found.append(Method(f"streaming LDA, {words(p)}", make, taught, lda_bytes))
    logistic = partial(conche_model, None, 8, loss="logistic")
    sgd = partial(SGDClassifier, loss="log_loss", random_state=0)
    network = partial(MLPClassifier, (400, 400), batch_size=10, random_state=0)
    return [
        *found,
        Method("**Conche, K = 8**, pixels, logistic", logistic, taught, bytes_of),
        Method("SGD, pixels", sgd, in_batches, lambda model: model.coef_.nbytes),
        Method("fine-tuning (network, 400-400)", network, in_batches, network_bytes),
    ]


def lda_bytes(model: StreamingLDA) -> int:
    return model.scatter.nbytes + model.means.nbytes


def network_bytes(model: MLPClassifier) -> int:
    return sum(a.nbytes for a in [*model.coefs_, *model.intercepts_])


def measured(method: Method, data: Data) -> Row:
    model, accuracy, seconds = method.make(), [], 0.0
    for t in range(5):
        X, y = data.task(t)
        clock = time.perf_counter()
        model = method.teach(model, X, y)
        seconds += time.perf_counter() - clock
        X, y = data.seen(t)
        predicted = model.predict(X)
        accuracy.append(float(np.mean(predicted == y)))
    return Row(method.name, accuracy, method.kept(model), seconds, predicted)


def offline(n_features: int | None, data: Data) -> Row:
    """Ridge regression on all samples at once: one task, one node, every column exact."""
    columns = data.X.shape[1] if n_features is None else n_features
    solver = conche.Memory(rank=columns + 1)
    pipe = conche_model(n_features, 1, solver=solver)
    clock = time.perf_counter()
    pipe.partial_fit(data.X, data.y)
    seconds = time.perf_counter() - clock
    predicted = pipe.predict(data.X_test)
    accuracy = [float(np.mean(predicted == data.y_test))]
    return Row(f"offline ridge, {words(n_features)}", accuracy, data.X.nbytes, seconds, predicted)


def table(rows: list[Row], n: int, published: bool) -> str:
    """One line per method; all see every sample once and store none, unless it says otherwise."""
    heads = "method | after 1 | 2 | 3 | 4 | 5 tasks | passes | samples stored | kept | seconds"
    lines = [f"| {heads} |"]
    lines.append("|---|" + "--:|" * 9)
    for row in rows:
        cells = [""] * (5 - len(row.accuracy)) + [f"{a:.4f}" for a in row.accuracy]
        stored = f"all {n:,}" if row.name.startswith("offline") else "0"
        cells += ["1", stored, f"{row.kept / 1e6:,.1f} MB", f"{row.seconds:,.1f}"]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    for name, accuracy, samples, source in PUBLISHED if published else ():
        cells = ["", "", "", "", f"{accuracy:.3f}", "", f"{samples:,}", "", ""]
        lines.append(f"| {name}, as published: {source} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(rows: list[Row], data: Data, path: Path, title: str) -> None:
    """Accuracy over the tasks, and the confusion matrix of the best of Conche's."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    shown = [row for row in rows if len(row.accuracy) == 5]
    colours = plt.get_cmap("tab20")
    for i, row in enumerate(shown):
        ours = "Conche" in row.name
        look: dict[str, Any] = dict(ls="-" if ours else "--", lw=2 if ours else 1.3)
        look |= dict(marker="o", ms=4, color=colours(i % 20), label=row.name.replace("**", ""))
        left.plot(range(1, 6), row.accuracy, **look)
    left.set(xlabel="new classes of the task", ylabel="accuracy on the classes seen so far")
    left.set(title=title, ylim=(0, 1.02))
    left.set_xticks(range(1, 6), ["0, 1", "2, 3", "4, 5", "6, 7", "8, 9"])
    left.grid(alpha=0.25)
    left.legend(fontsize=7, ncols=2, loc="center right", bbox_to_anchor=(1.0, 0.68))
    best = max((row for row in shown if "Conche" in row.name), key=lambda row: row.accuracy[-1])
    confusion(right, best, data)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=130)
    plt.close(fig)
    write_atomically(path, buffer.getvalue())
    print(f"plots: {path}")


def confusion(axis: Any, row: Row, data: Data) -> None:
    counts = np.zeros((10, 10))
    np.add.at(counts, (data.y_test, row.predicted), 1)
    share = 100 * counts / counts.sum(axis=1, keepdims=True)
    axis.imshow(share, cmap="Blues", vmax=15)
    for i, j in np.ndindex(10, 10):
        if share[i, j] >= 0.05:
            colour = "white" if share[i, j] > 8 else "black"
            look: dict[str, Any] = dict(ha="center", va="center", fontsize=7, color=colour)
            axis.text(j, i, f"{share[i, j]:.1f}", **look)
    axis.set_xticks(range(10))
    axis.set_yticks(range(10))
    axis.set(xlabel="predicted", ylabel="true", title=f"{row.name.replace('**', '')}: percent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--data", type=Path, help="folder with MNIST's (or Fashion's) idx files")
    parser.add_argument("--features", type=int, nargs="*", help="2000 10000, or 500 without --data")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--out", type=Path, default=Path("."))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    data = read(asked.data)
    counts = [2000, 10_000] if asked.data else [500]
    if asked.features is not None:
        counts = asked.features
    features: list[int | None] = [None, *counts]
    asked.out.mkdir(parents=True, exist_ok=True)
    rows = [measured(m, data) for m in track(methods(features, asked.nodes), "learning")]
    rows += [offline(p, data) for p in features if p is None or p <= 2048]
    print(table(rows, len(data.y), asked.data is not None))
    name = "scikit-learn's digits" if asked.data is None else asked.data.resolve().name
    draw(rows, data, asked.out / "class_incremental.png", f"class-incremental: {name}")


if __name__ == "__main__":
    main()
