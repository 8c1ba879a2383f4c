"""Secure sums in this process, and streams of all kinds to try them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import conche
from conche.common.arrays import Array
from conche.network import Coefficients, LocalNetwork, Placed
from conche.network.base import Each, coefficients
from conche.network.secure import Sums, Veil, Veiled, without_sums
from conche.network.words import Scales
from conche.nodes import PLAIN, Opening, Proposal, Setup, Start

Stream = tuple[type[Any], dict[str, Any], list[dict[str, Any]]]


class VeiledNetwork(LocalNetwork):
    """Every node is a worker, whose answers are masked as they are on Ray and MPI; the coordinator
    asks no single one."""

    apart = secure = True

    def start(self, setup: Setup) -> None:
        super().start(setup)
        self.sums, self.rounds = Sums(), 0
        self.veils = [Veil() for _ in self.host.nodes]
        for veil in self.veils:
            veil.meet([one.public() for one in self.veils])

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        self.rounds = 0
        opening: Opening = self._hidden("begin", self.openings(X, placed, start))
        return opening

    def propose(self, g: Array) -> Proposal:
        self.rounds += 1
        name, before = (f"round {self.rounds - ago}" for ago in (0, 1))
        each = [node.propose(g) for node in self.host.nodes]
        proposal: Proposal = self._hidden(name, each, g, before)
        return proposal

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        raise AssertionError(f"{question!r} is no question to single nodes")

    def total(self, question: str | Each, *about: Any) -> Array:
        total: Array = self._hidden(f"total {question}", self.host.ask(question, *about))
        return total

    def largest(self, question: str | Each, *about: Any) -> Array:
        each = self.host.ask(question, *about)

        def ask(level: int, known: Sequence[int]) -> Veiled:
            message = self.sums.next_message()
            return self._sum(lambda veil, own: veil.digits(message, level, known, own), each)

        return self.sums.largest(ask)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        shares, states = self.host.end(curvature)
        self.host.forget()
        own = [without_sums([share]) for share in shares]
        known = self._hidden("end", [sums for _, sums in own])
        whole = coefficients(self._setup(), [kept[0] for kept, _ in own])
        return whole._replace(offset=known[0], reach=known[1]), tuple(states)

    def _hidden(
        self, name: str, each: Sequence[Any], about: Array | None = None, before: str = ""
    ) -> Any:
        def ask(scales: Scales | None) -> Veiled:
            message = self.sums.next_message()
            return self._sum(lambda veil, own: veil.sent(message, scales, own), each)

        return self.sums.total(name, ask, about, before)

    def _sum(self, sent: Callable[[Veil, Any], Veiled], each: Sequence[Any]) -> Veiled:
        answers = [sent(veil, own) for veil, own in zip(self.veils, each, strict=True)]
        return answers[0]._replace(words=np.sum([one.words for one in answers], axis=0))


class Together(LocalNetwork):
    """Nodes that turn their columns together, as they do for secure sums, and mask nothing."""

    apart = secure = True


def any_stream(rng: np.random.Generator) -> Stream:
    """A stream of memory with its defaults, or with what users change of them; columns of any kind
    beside each other, tasks of any size. Estimator, parameters, and what `partial_fit` is given."""
    p = int(rng.integers(2, 41))
    sizes = [int(rng.integers(1, 3 * p + 10)) for _ in range(rng.integers(1, 6))]
    mixing, units, offsets = _kind_of_columns(rng, p)
    truth = rng.standard_normal((p, 2)) * (rng.random((p, 1)) < rng.uniform(0.1, 1.0))
    noise = float(rng.choice([0.0, 0.1, 1.0, 3.0]))
    drift = float(rng.choice([0.0, 0.3]))
    solver = dict(ridge=rng.choice(np.array([None, None, 1.0, 0.01, 100.0], object)))
    solver["discount"] = rng.choice(np.array([1.0, 1.0, 1.0, 0.8, "auto"], object))
    options: dict[str, Any] = dict(
        n_nodes=int(rng.integers(2, min(p, 12) + 1)),
        solver=conche.Memory(**solver),
        fit_intercept=bool(rng.random() < 0.6),
        scaling=rng.choice(np.array(["first", "standard", None, "running"], object)),
    )
    kind = rng.choice(np.array(["one", "one", "two", "classes"], object))
    weighed, late = rng.random() < 0.25, rng.random() < 0.15
    tasks = []
    for n in sizes:
        Z = rng.standard_normal((n, p)) @ mixing
        truth = truth + drift * rng.standard_normal(truth.shape)
        Y = Z @ truth + noise * rng.standard_normal((n, 2))
        task: dict[str, Any] = dict(X=Z * units + offsets, y=Y if kind == "two" else Y[:, 0])
        if kind == "classes":
            task["y"] = np.digitize(Y[:, 0], [-1.0, 1.0])
        if weighed:
            task["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 3.0], n)
            task["sample_weight"][0] = 1.0
        tasks.append(task)
    if late:  # columns that come with the second task, and by name
        pd = pytest.importorskip("pandas")
        first = int(rng.integers(options["n_nodes"], p + 1))
        for i, task in enumerate(tasks):
            names = [f"c{j}" for j in range(p if i else first)]
            task["X"] = pd.DataFrame(task["X"][:, : len(names)], columns=names)
    if kind == "classes":  # some may come later, too
        return conche.ConcheClassifier, options | {"loss": "squared"}, tasks
    return conche.ConcheRegressor, options, tasks


def _kind_of_columns(rng: np.random.Generator, p: int) -> tuple[Array, Array, Array]:
    """How columns of a task are made of independent ones, in which units, and around what."""
    mixing = np.eye(p)
    how = rng.integers(4)
    if how == 1:  # neighbours are alike
        gaps = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
        mixing = np.linalg.cholesky(rng.choice([0.5, 0.95]) ** gaps).T
    elif how == 2:  # a few factors, and a little of each column's own
        few = rng.standard_normal((p, p)) * (np.arange(p) < max(p // 4, 1))[:, None]
        mixing = few + 0.1 * np.eye(p)
    if rng.random() < 0.3:  # twins
        twin, other = rng.choice(p, 2, replace=False)
        mixing[:, twin] = mixing[:, other]
    units, offsets = np.ones(p), np.zeros(p)
    if rng.random() < 0.4:
        units = 10.0 ** rng.uniform(-2, 2, p)
    if rng.random() < 0.4:
        offsets = units * rng.uniform(-5, 5, p)
    if rng.random() < 0.2:  # a constant column
        units[rng.integers(p)] = 0.0
    return mixing, units, offsets


def learnt(stream: Stream, network: Any) -> Any:
    """The model after all tasks."""
    kind, options, tasks = stream
    model = kind(network=network, **options)
    for task in tasks:
        model.partial_fit(**task)
    return model


def apart(one: Any, other: Any, stream: Stream) -> float:
    """How far predictions of the last task differ, relative to the largest: how twins share a
    weight is rounding's affair where a ridge is weak."""
    X = np.asarray(stream[2][-1]["X"])
    some, others = (X @ np.atleast_2d(m.coef_).T + m.intercept_ for m in (one, other))
    gap = float(np.max(np.abs(some - others)))
    return gap / float(np.max(np.abs(some))) if gap else 0.0
