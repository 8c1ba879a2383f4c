"""Sparse text in tasks, against stochastic gradients: `python -m benchmarks.text`.

Three streams of documentation that Python and Debian packages bring, as 16,384 hashed words: the
docstrings of Python packages (the class is the package), manual pages (the section), and the
paragraphs of info manuals (the manual). Each comes mixed; with classes that arrive one after
another and stay; and class by class. `ConcheClassifier()` is compared with
`SGDClassifier(loss="log_loss")`, which is told all classes beforehand: by the error on every task
before it is learnt, over the whole stream, and by the error on a fifth of the documents, held out,
at the end.

Exit status 1 where ours is worse: before learning; class by class, at the end. Class by class the
error before learning says who forgets fastest: to repeat the last label seen, without any model,
is better there than both (its column is in the table). A stream whose documents are not on this
machine is left out.
"""

from __future__ import annotations

import ast
import gzip
import re
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

import conche
from conche.common.arrays import Array

COLUMNS, TASKS = 2**14, 40
FEWEST, MOST = 60, 400  # documents of a class
CLASSES = 30
WORDS = 5  # that a document has at least
HELD = 0.2  # of the documents
ORDERS = ("mixed", "classes arrive", "class by class")
Documents = Iterator[tuple[str, str]]  # class and text


class Stream(NamedTuple):
    X: Any  # sparse, one row a document
    y: Array
    held: Array  # which documents are never learnt


def docstrings(only: str = "*") -> Documents:
    """Of the standard library's packages and of all that are installed beside it; or of one."""
    stdlib, site = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    counts: Counter[str] = Counter()
    for root in (stdlib, site):
        for file in sorted(root.glob(f"{only}/**/*.py")):
            inside = file.relative_to(root).parts
            if "site-packages" in inside or "test" in str(inside):
                continue
            package = inside[0].removesuffix(".py")
            if counts[package] > 3 * MOST:
                continue
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):  # templates, and files for another Python
                continue
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            for node in ast.walk(tree):
                if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                    counts[package] += 1
                    # its package's own name would be too easy to learn from
                    yield package, re.sub(rf"\b{package}\b", "", text, flags=re.IGNORECASE)


def manual_pages() -> Documents:
    """English ones, without the header that names their section."""
    for file in sorted(Path("/usr/share/man").glob("man[1-8]/*.gz")):
        text = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        if not text.startswith(".so"):  # another name of a page
            yield file.parent.name, re.sub(r"^[.'\\].*", "", text, flags=re.MULTILINE)


def info_manuals() -> Documents:
    """Paragraphs."""
    for file in sorted(Path("/usr/share/info").glob("*.gz")):
        manual = re.split(r"[.-]", file.name)[0]
        text = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        for paragraph in re.split(r"\n\s*\n", text):
            yield manual, re.sub(rf"\b{manual}\b", "", paragraph, flags=re.IGNORECASE)


SOURCES: dict[str, Callable[[], Documents]] = {
    "docstrings by package": docstrings,
    "manual pages by section": manual_pages,
    "paragraphs by info manual": info_manuals,
}


def read(source: Callable[[], Documents], columns: int = COLUMNS) -> Stream | None:
    """The classes with the most documents, some documents of each; None where there are none."""
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, None]] = {}  # no text twice
    for name, text in source():
        if len(text.split()) >= WORDS:
            found.setdefault(name, {})[text] = None
    large = [name for name in sorted(found) if len(found[name]) >= FEWEST]
    texts: list[str] = []
    labels: list[str] = []
    for name in sorted(large, key=lambda name: -len(found[name]))[:CLASSES]:
        own = list(found[name])
        texts += [own[i] for i in rng.permutation(len(own))[:MOST]]
        labels += [name] * (len(texts) - len(labels))
    if len(large) < 2:
        return None
    held = rng.random(len(labels)) < HELD
    return Stream(HashingVectorizer(n_features=columns).transform(texts), np.array(labels), held)


def in_order(stream: Stream, order: str, n_tasks: int = TASKS) -> list[Array]:
    """The documents of every task: each class is there from when it begins until it ends."""
    rng = np.random.default_rng(0)
    classes, place = np.unique(stream.y, return_inverse=True)
    begin, end = np.zeros(len(classes)), np.ones(len(classes))
    if order != "mixed":
        begin = rng.permutation(len(classes)) / len(classes)
    if order == "class by class":
        end = begin + 1 / len(classes)
    when = begin[place] + (end - begin)[place] * rng.random(len(place))
    when[stream.held] = np.inf
    return np.array_split(np.argsort(when)[: int(np.sum(~stream.held))], n_tasks)


class Told:
    """`SGDClassifier`, which has to know all classes with its first task."""

    def __init__(self, classes: Array):
        self.classes, self.model = classes, SGDClassifier(loss="log_loss", random_state=0)

    def partial_fit(self, X: Any, y: Array) -> None:
        self.model.partial_fit(X, y, classes=self.classes)

    def predict(self, X: Any) -> Array:
        return np.asarray(self.model.predict(X))


class Last:
    """No model: the last label that was seen."""

    def partial_fit(self, X: Any, y: Array) -> None:
        self.label = y[-1]

    def predict(self, X: Any) -> Array:
        return np.full(X.shape[0], self.label)


class Errors(NamedTuple):
    before: float  # learning a task, over the whole stream; the first task is all wrong
    held: float  # out, at the end
    seconds: float


def learn(model: Any, stream: Stream, tasks: list[Array]) -> Errors:
    clock, wrong = time.perf_counter(), len(tasks[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t, rows in enumerate(tasks):
            if t:
                wrong += int(np.sum(model.predict(stream.X[rows]) != stream.y[rows]))
            model.partial_fit(stream.X[rows], stream.y[rows])
    seconds = time.perf_counter() - clock
    held = np.mean(model.predict(stream.X[stream.held]) != stream.y[stream.held])
    return Errors(wrong / sum(map(len, tasks)), float(held), seconds)


def compared(stream: Stream, order: str, n_tasks: int = TASKS) -> dict[str, Errors]:
    """Ours, theirs, and what takes no learning."""
    tasks = in_order(stream, order, n_tasks)
    models = {
        "Conche": conche.ConcheClassifier(),
        "SGD": Told(np.unique(stream.y)),
        "last label": Last(),
    }
    return {name: learn(model, stream, tasks) for name, model in models.items()}


def worse(found: dict[str, Errors], order: str) -> bool:
    """Whether ours is, by what is asked of this order."""
    ours, theirs = found["Conche"], found["SGD"]
    if order == "class by class":
        return ours.held > theirs.held
    return ours.before > theirs.before


def main() -> int:
    print("Errors before learning, on documents held out, and seconds")
    print("| documents | order | Conche | SGD | last label |\n|---|---|---|---|---|")
    missed = False
    for name, source in SOURCES.items():
        stream = read(source)
        if stream is None:
            print(f"| {name} | not on this machine |", flush=True)
            continue
        for order in ORDERS:
            found = compared(stream, order)
            missed |= worse(found, order)
            cells = [f"{e.before:.3f}, {e.held:.3f}, {e.seconds:.1f}" for e in found.values()]
            print(f"| {name} | {order} | {' | '.join(cells)} |", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
