"""Weights that stay at home: a node keeps its state in a folder of its own machine.

What leaves the node in its state's place is a token: an arbitrary name, by which the node finds the
state again. Coordinator and network pass tokens on as they do states.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array, Block, as_dense
from ..common.atomic import write_atomically
from ..common.sealed import seal, unseal
from ..common.words import one_line
from ..errors import ModelFileError, StreamError
from ..tasks.errands import Answer, NodeErrand
from ..tasks.keys import Keys
from .node import PLAIN, Node, NodeState, Opening, Start
from .scaling import Scaling
from .solvers.base import Context
from .solvers.pooled import own_secret

FORMAT = 1
TOKEN = "home"  # its name among what a state keeps
LENGTH = 12  # bytes of a token
SECRET = 32  # characters of a secret, at least


class Home(NamedTuple):
    """Where a node keeps its states: a folder on its machine, and its own name there."""

    folder: str
    node: str

    def keep(self, state: NodeState) -> NodeState:
        """Write a state; what stands for it elsewhere has no weights, and its token."""
        token = secrets.token_bytes(LENGTH)
        sealed = seal(FORMAT, json.dumps({"node": self.node}), state.to_arrays())
        self._write(self.file(token.hex()), sealed)
        nothing = np.zeros((0, state.weights.shape[1]), state.weights.dtype)
        return NodeState(nothing, {TOKEN: np.frombuffer(token, np.uint8)})

    def open(self, state: NodeState) -> NodeState:
        """The state that another one stands for; one that was never kept is as it is."""
        token = token_of(state)
        if token is None:
            return state
        path = self.file(token)
        try:
            _, arrays = unseal(path, FORMAT)
        except FileNotFoundError:
            raise ModelFileError(
                f"node {self.node!r}: {path}: its weights are not there; they stay on the machine "
                f"and in the folder where they were learnt"
            ) from None
        except ModelFileError as error:
            raise ModelFileError(f"node {self.node!r}: {one_line(error)}") from None
        except OSError as error:
            raise self._failed(path, "read", error) from None
        return NodeState.from_arrays(arrays)

    def drop(self, token: str) -> None:
        """Let go of a state that nobody needs any more."""
        with suppress(OSError):
            self.file(token).unlink(missing_ok=True)

    def secret(self) -> str:
        """What the node alone knows, made once: its rotations are drawn from it."""
        path = Path(self.folder) / f"{self.node}.secret"
        try:
            if not path.exists():
                self._write(path, secrets.token_hex(SECRET // 2).encode())
            secret = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise self._failed(path, "read", error) from None
        if len(secret.strip()) < SECRET:
            raise StreamError(
                f"node {self.node!r}: {path}: {SECRET} characters are the least for a secret"
            )
        return secret

    def _write(self, path: Path, data: bytes) -> None:
        """Nobody else of this machine may look into it."""
        self._ready()
        try:
            write_atomically(path, data, 0o600)
        except OSError as error:
            raise self._failed(path, "written", error) from None

    def _failed(self, path: Path, what: str, error: Exception) -> StreamError:
        reason = getattr(error, "strerror", None) or one_line(error)
        return StreamError(f"node {self.node!r}: {path}: cannot be {what} ({reason})")

    def _ready(self) -> None:
        folder = Path(self.folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StreamError(
                f"node {self.node!r}: {folder}: cannot be made ({error.strerror})"
            ) from None

    def file(self, token: str) -> Path:
        """What is found by a token."""
        return Path(self.folder) / f"{self.node}-{token}.conche"


def token_of(state: NodeState) -> str | None:
    """By which a node finds the state that this one stands for; None: it is one itself."""
    return bytes(state.kept[TOKEN]).hex() if TOKEN in state.kept else None


class HomeNode(Node):
    """A node that keeps its states at home."""

    def __init__(self, node: Node, home: Home):
        super().__init__(node.solver, node.scaling, node.intercept, node.number)
        self.home = home
        self._ended: NodeState | None = None

    def begin(
        self, block: Block, state: NodeState, start: Start = PLAIN, marked: bool = False
    ) -> Opening:
        return super().begin(block, self.home.open(state), start, marked)

    def factorise(self, context: Context) -> None:
        with own_secret(self.home.secret()):
            super().factorise(context)

    def end(self, curvature: Array | None = None) -> NodeState:
        self._ended = super().end(curvature)
        return self.home.keep(self._ended)

    def reach(self, state: NodeState) -> Array:
        assert self._ended is not None
        return super().reach(self._ended)

    def forget(self) -> None:
        self._ended = None
        super().forget()


@dataclass(frozen=True)
class Drop(NodeErrand):
    """Let go of states that were kept, which nobody needs any more."""

    home: Home
    tokens: tuple[str, ...]

    def work(self) -> Answer:
        for token in self.tokens:
            self.home.drop(token)
        return Answer({}, {})


@dataclass(frozen=True)
class Score(NodeErrand):
    """A node's share of the predictions of a task, for one or several estimates.

    Parameters
    ----------
    task, columns, keys, n_rows : what to read.
    given : the estimates' weights of the node's columns, estimates x outputs x columns.
    means : what to fill missing values with, estimates x columns; None: there are none.
    kept : instead of them, what the node keeps at home.
    """

    task: str
    columns: tuple[str, ...]
    keys: Keys | None
    n_rows: int
    given: Array | None = None
    means: Array | None = None
    kept: Kept | None = None

    def work(self) -> Answer:
        block = self.files.read(self.task, self.columns, self.keys, self.n_rows)
        if self.kept is not None:
            return Answer({}, {"scores": self.kept.scores(block)[None]})
        assert self.given is not None
        if self.means is None or not np.any(gaps := np.isnan(as_dense(block))):
            return Answer({}, {"scores": np.stack([block @ weights.T for weights in self.given])})
        pairs = zip(self.given, self.means, strict=True)
        found = [np.where(gaps, means, block) @ weights.T for weights, means in pairs]
        return Answer({}, {"scores": np.stack(found)})


class Kept(NamedTuple):
    """A state at home, and how it makes predictions of columns as they come."""

    home: Home
    token: str
    scaling: Scaling
    outputs: slice

    def scores(self, block: Block) -> Array:
        """Rows x outputs; the intercept, where the node has it, and what centring adds included."""
        token = np.frombuffer(bytes.fromhex(self.token), np.uint8)
        state = self.home.open(NodeState(np.zeros((0, 0)), {TOKEN: token}))
        weights, offset = self.scaling.outward(state.weights, state.numbers)
        means = self.scaling.means(state.numbers)
        weights, offset, p = weights[:, self.outputs], offset[self.outputs], block.shape[1]
        if len(weights) not in (p, p + 1):
            raise StreamError(f"{len(weights)} weights at home for {p} columns")
        if means is not None:
            block = np.where(np.isnan(as_dense(block)), means, as_dense(block))
        scores: Any = block @ weights[:p] + offset
        return np.asarray(scores + weights[p] if len(weights) > p else scores)
