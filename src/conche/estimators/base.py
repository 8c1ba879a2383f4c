"""What regressor and classifier share: parameters, and fitted attributes that read the state."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

from scipy import sparse
from sklearn.base import BaseEstimator

from ..common.arrays import Array, here, is_here, like, on_gpu
from ..common.checks import flag, one_of, real, whole
from ..common.device import DEVICES, find_device
from ..common.words import counted
from ..errors import DeviceWarning, NearSquareWarning, ParameterError
from ..memory import Past
from ..network import DeviceNetwork, Network, meet
from ..nodes import NodeState, Partition, Scaling, Setup
from ..nodes.scaling import MISSING
from ..nodes.solvers import SolverOption, option
from ..nodes.solvers.base import Meeting
from ..nodes.solvers.options import About
from ..rounds import STEPS, Loss
from ..rounds.losses import LOSSES, get_loss
from ..tasks.columns import Columns
from ..tasks.node_columns import NodeColumns
from .connection import Connection, connect
from .departure import Departure, check_departure, without_node
from .elsewhere import check_homes, own_scores
from .fitted import Fitted, Held
from .gap import Account
from .growth import with_columns
from .inputs import Inputs, Schema, check_features, named
from .judge import Judge
from .labels import Labels
from .state import Lesson, Settings, StreamState, after_task, frozen

SCALINGS = (None, "standard", "first", "running")


class Targets(NamedTuple):
    """A task's targets as the nodes learn them, and what they stand for."""

    Y: Array  # n_samples x n_outputs
    loss: Loss
    flat: bool
    labels: Labels | None = None
    weights: Array | None = None  # of the samples
    histogram: bytes = b""  # of labels: how often each comes


class Asked(NamedTuple):
    """What is to be told of a task beside what is learnt."""

    errors: bool = False  # its errors before and after
    last: bool = False  # whether it is the stream's last task


PLAIN = Asked()


class LinearModel(Fitted, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear model that lives on several nodes and learns one task after another."""

    loss: str = "squared"

    def __init__(
        self,
        n_nodes: int | None = None,
        *,
        partition: Any = None,
        solver: str | SolverOption = "exact",
        n_rounds: int = 1,
        steps: Literal["safe", "adaptive", "cg"] = "safe",
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        scaling: str | None = None,
        missing: str = "refuse",
        device: str | None = None,
        seed: int = 0,
    ):
        self.n_nodes = n_nodes
        self.partition = partition
        self.solver = solver
        self.n_rounds = n_rounds
        self.steps = steps
        self.tol = tol
        self.network = network
        self.fit_intercept = fit_intercept
        self.scaling = scaling
        self.missing = missing
        self.device = device
        self.seed = seed

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn; ``solver__rank`` and the like also reach a solver given by name."""
        nested = {k: v for k, v in params.items() if k.startswith("solver__")}
        super().set_params(**{k: v for k, v in params.items() if k not in nested})
        if nested and not isinstance(self.solver, SolverOption):
            own = {key.removeprefix("solver__"): value for key, value in nested.items()}
            self.solver = option(self.solver, **own)
        elif nested:
            super().set_params(**nested)
        return self

    # ---- learning ----

    def _connect(self, reset: bool, device: str | None = None) -> Connection:
        """The live network: the same one as long as the parameter is, and the device."""
        known = self._held.connection if hasattr(self, "_held") else None
        same = known is not None and (
            known.asked is self.network
            or (isinstance(self.network, str) and known.asked == self.network)
        )
        if known is not None and same and device in (None, known.device):
            return known
        new = connect(self.network, device or "cpu")
        if not same and known is not None and not reset:
            raise ParameterError(
                f"the network of a stream cannot change from {known.asked!r} to {self.network!r}; "
                f"fit starts over"
            )
        return new

    def _learn(self, inputs: Inputs, targets: Targets, reset: bool, asked: Asked = PLAIN) -> None:
        """Learn one task; nothing changes if it fails, or is interrupted."""
        device = self._where(inputs, None if reset else self.state_)
        connection = self._connect(reset, device)
        stays = isinstance(connection.network, DeviceNetwork) or isinstance(inputs.X, Columns)
        lesson = Lesson(
            inputs.X if stays else here(inputs.X),
            targets.Y,
            targets.labels,
            targets.weights,
            targets.loss,
            self._error,
            self.steps,
            int(self.n_rounds),
            self.tol,
            errors=asked.errors,
            last=asked.last,
            histogram=targets.histogram,
        )
        wire = connection.network
        try:
            if reset:
                state = self._fresh(inputs, targets, connection)
            else:
                state = self._continued(connection)
            if inputs.schema.n_features > state.schema.n_features:
                state, added = with_columns(state, inputs.schema, wire, self.partition)
                lesson = lesson._replace(added=added)
            self._warn_if_nearly_square(state, inputs.X.shape[0])
            learnt = after_task(state, meet(wire, state.setup), lesson)
        except BaseException as error:
            wire.abandon()
            raise named(error, inputs, targets.weights) from error.__cause__
        self._held = Held(connection, learnt)  # the one assignment that counts

    def go_on(self, state: StreamState) -> None:
        """Take up a stream where it stood: ``state.nodes`` are the nodes' states themselves."""
        connection = connect(self.network, state.setup.device)
        connection.network.start(state.setup)
        place = meet(connection.network, state.setup).place
        past = _past_on(state.past, state.setup.device)
        self._held = Held(connection, replace(state, nodes=place(state.nodes), past=past))

    def take_over(self, other: LinearModel) -> None:
        """Go on with what another model with the same parameters has learnt."""
        self._held = other._held

    def settle(self) -> None:
        """Find ridge and weights, if nobody has asked for them since the last task."""
        state = self.state_
        if state.past is not None and not state.setup.homes:
            self._held = Held(self._held.connection, replace(state, found=state.solved))

    def drop_node(self, node: int) -> Departure:
        """Let a node leave, and its columns with it; the others make up for them as far as their
        memory knows how. Answers what it has cost."""
        self.check_stream()
        check_departure(self.state_, node)
        connection = self._held.connection
        left, departure = without_node(self.state_, self.node_states(), node)
        connection.network.start(left.setup)
        place = meet(connection.network, left.setup).place
        self._held = Held(connection, replace(left, nodes=place(left.nodes)))
        return departure

    def node_states(self, state: StreamState | None = None) -> list[NodeState]:
        """Every node's state, wherever it is; last the coordinator's, where it has one."""
        state = self.state_ if state is None else state
        return meet(self.network_, state.setup).fetch(state.nodes)

    @property
    def alpha_(self) -> float:
        """Elastic nets: the strength of the penalty; with ``alpha="auto"``, the one in force."""
        state = self.state_
        alpha = state.setup.solver.alpha_of(self.node_states()[-1].kept, state.judge.strength)
        if alpha is None:
            raise AttributeError("only elastic nets have an alpha")
        return alpha

    def _where(self, inputs: Inputs, state: StreamState | None) -> str:
        """Where a task is learnt: where the user says, else where its columns are, else where the
        past is. What has no use for a device is learnt here, and that is said once."""
        before = "cpu" if state is None else state.setup.device
        asked = self.device or ("cuda" if on_gpu(inputs.X) else before)
        if asked == "cpu":
            return asked
        unfit = self._unfit(inputs.schema.sparse or sparse.issparse(inputs.X))
        if unfit is None:
            return asked
        if state is None or before != "cpu":
            warnings.warn(
                f"{unfit} learnt on the processor, not on device={asked!r}",
                DeviceWarning,
                stacklevel=4,
            )
        return "cpu"

    def _unfit(self, sparse_columns: bool) -> str | None:
        """What a device is of no use to; None where it is."""
        if sparse_columns:
            return "sparse columns are"
        return None if option(self.solver).on_devices else "an elastic net is"

    def _fresh(self, inputs: Inputs, targets: Targets, connection: Connection) -> StreamState:
        """A stream that is about to begin: nodes with zero weights."""
        setup, settings = self.make_setup(inputs.schema)
        setup, network = replace(setup, device=connection.device), connection.network
        judge = Judge.of(setup.solver.strengths(targets.loss.quadratic), targets.Y.shape[1])
        network.start(setup)
        outputs = len(judge.strengths) * judge.n_outputs
        placed = meet(network, setup).place(setup.fresh(outputs, inputs.schema.dtype))
        sums = setup.solver.meeting is Meeting.SUMS
        account = None
        if setup.solver.remembers and not sums:
            account = Account.of(judge.strengths, judge.n_outputs)
        return StreamState(
            settings,
            setup,
            inputs.schema,
            placed,
            judge,
            targets.flat,
            inputs.schema.n_features,
            targets.labels,
            account,
            turned=self._turned(inputs.schema) if sums else "",
        )

    def _turned(self, schema: Schema) -> str:
        """How a lossless memory's nodes hide their columns."""
        if isinstance(self.network, Network) and self.network.secure:
            return "together"
        return "each" if schema.homes else ""

    def _continued(self, connection: Connection) -> StreamState:
        """The stream so far, if the parameters still allow for it to go on."""
        self.check_stream()
        state, network = self.state_, connection.network
        if connection.device != state.setup.device:
            return self._carried(connection)
        if network.setup is not state.setup:  # it served another stream in between
            network.start(state.setup)
        return state

    def _carried(self, connection: Connection) -> StreamState:
        """The stream so far, on another device."""
        state, states = self.state_, self.node_states()
        setup = replace(state.setup, device=connection.device)
        connection.network.start(setup)
        past = _past_on(state.past, connection.device)
        return replace(
            state, setup=setup, nodes=meet(connection.network, setup).place(states), past=past
        )

    def make_setup(
        self,
        schema: Schema,
        partition: Partition | None = None,
        begun: int | None = None,
        turned: str | None = None,
    ) -> tuple[Setup, Settings]:
        """What the nodes are made with for these columns, and the settings behind it; where columns
        have come since, ``partition`` says where they are, and the stream was ``begun`` with so
        many columns, which its nodes have ``turned`` or not."""
        settings = self._settings(begun or schema.n_features, schema.sparse)
        sums = settings.solver.meeting is Meeting.SUMS
        constant = self.fit_intercept and not sums  # sums centre by themselves
        if partition is None:
            names = schema.names
            partition = Partition.make(
                schema.n_features, self.n_nodes, self.partition, constant, names
            )
        turned = self._turned(schema) if turned is None else turned
        scaled, centred = self.scaling, self.scaling is not None or settings.solver.remembers
        if sums:
            scaled, centred = None, bool(turned)
        elif scaled == "standard":
            scaled = "first"
        scaling = Scaling(scaled, self.missing, bool(self.fit_intercept) and centred)
        device = "cpu" if self.device is None or self._unfit(schema.sparse) else self.device
        check_homes(schema.homes, settings.solver.meeting, device)
        return Setup(settings.solver, partition, scaling, device, schema.homes), settings

    def _settings(self, begun: int, sparse_columns: bool) -> Settings:
        network = self.network if isinstance(self.network, Network) else None
        about = About(
            begun,
            int(self.seed),
            network is None or network.central,
            sparse_columns,
            get_loss(self.loss).quadratic,
            self.device not in (None, "cpu"),
            network is not None and network.secure,
            self.scaling is not None,
        )
        return Settings(
            self.n_nodes,
            None if self.partition is None else frozen(self.partition),
            bool(self.fit_intercept),
            option(self.solver).solver(about),
            self.loss,
            self.scaling,
            self.missing,
        )

    def check_parameters(self) -> None:
        """Refuse parameters that cannot be, one line each."""
        if self.n_nodes is not None:
            whole("n_nodes", self.n_nodes)
        one_of("loss", self.loss, LOSSES)
        one_of("scaling", self.scaling, SCALINGS)
        one_of("missing", self.missing, MISSING)
        whole("n_rounds", self.n_rounds)
        whole("seed", self.seed, least=0)
        flag("fit_intercept", self.fit_intercept)
        one_of("steps", self.steps, STEPS)
        one_of("device", self.device, (None, *DEVICES))
        if self.tol is not None:
            real("tol", self.tol)

    def check_stream(self) -> None:
        """Refuse parameters that have changed since the stream was begun, and must not."""
        self.check_parameters()
        now = self._settings(self.state_.begun, self.state_.schema.sparse)
        for name, old, new in zip(Settings._fields, self.state_.settings, now, strict=True):
            if old != new:
                raise ParameterError(
                    f"the {name} of a stream cannot change from {old} to {new}; fit starts over"
                )

    def _warn_if_nearly_square(self, state: StreamState, n: int) -> None:
        """Said before training."""
        counts = state.setup.partition.weight_counts()
        square = state.setup.solver.nearly_square(n, counts)
        if square:
            k = square[0]
            warnings.warn(
                f"node {k} holds {counts[k]} columns for {n} samples "
                f"({counted(len(square), 'such node')}): "
                f"nearly square blocks have an unbounded expected error under solver='exact'; use "
                f"another number of nodes, or solver='damped' or 'memory'",
                NearSquareWarning,
                stacklevel=5,
            )

    @abstractmethod
    def _error(self, predictions: Array, Y: Array) -> float:
        """How far predictions are from targets: mean square, or error rate."""

    def _decide(self, X: Any) -> Array:
        """Scores, n_samples x n_outputs."""
        state = self.state_
        if isinstance(X, NodeColumns) and X.visit is not None:
            return own_scores(X, state, self.node_states() if state.setup.homes else ())
        coef, intercept = state.coef.T, state.intercept
        gaps = state.setup.scaling.missing == "mean"
        X = check_features(type(self).__name__, X, state.schema, gaps)
        if gaps and not sparse.issparse(X):
            X = state.filled(X)
        if is_here(X):
            return X @ coef + intercept
        return X @ like(X, coef) + like(X, intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.missing == "refuse"
        return tags


def _past_on(past: Past | None, device: str) -> Past | None:
    """What the coordinator keeps, where it works."""
    if past is None or (device == "cpu" and is_here(past.best.sums.XY)):
        return past
    return past.moved(here if device == "cpu" else find_device(device).put)
