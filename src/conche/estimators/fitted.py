"""Fitted attributes: read from the state, never set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..common.arrays import Array
from ..network import Network
from ..nodes import Partition
from .connection import Connection
from .gap import OfflineGap
from .records import RoundRecord, TaskRecord
from .state import StreamState


class Held(NamedTuple):
    """All that learning changes in a model: one attribute, so that it changes at once."""

    connection: Connection
    state: StreamState


class Fitted:
    """What a model has learnt, as scikit-learn names it."""

    _held: Held

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_held")

    @property
    def state_(self) -> StreamState:
        """Everything that the stream has come to, as one frozen value."""
        if not hasattr(self, "_held"):
            check_is_fitted(self)
        return self._held.state

    @property
    def coef_(self) -> Array:
        """The estimate, for columns as they come."""
        state = self.state_
        return state.coef[0] if state.flat else state.coef

    @property
    def intercept_(self) -> Any:
        """0 unless ``fit_intercept``."""
        state = self.state_
        if not state.setup.partition.intercept:
            return 0.0
        return float(state.intercept[0]) if state.flat else state.intercept

    @property
    def n_tasks_seen_(self) -> int:
        """Tasks learnt so far."""
        return len(self.state_.tasks)

    @property
    def partition_(self) -> Partition:
        """Which node holds which columns."""
        return self.state_.setup.partition

    @property
    def history_(self) -> list[RoundRecord]:
        """One record per round."""
        return [record.copy() for record in self.state_.history]

    @property
    def tasks_(self) -> list[TaskRecord]:
        """One record per task."""
        return [record.copy() for record in self.state_.tasks]

    @property
    def damping_(self) -> float:
        """The damping in force in the last task."""
        return self.state_.damping

    @property
    def discount_(self) -> float:
        """The weight of the past per task; with ``discount="auto"``, the one that was chosen."""
        return self.state_.discount

    @property
    def offline_gap_(self) -> OfflineGap:
        """Memory and elastic nets: how far the offline objective is above its minimum."""
        account = self.state_.account
        if account is None:
            raise AttributeError(
                "only memory and elastic nets with the squared loss know their offline gap"
            )
        return account.gap(self.state_.counted)

    @property
    def node_predictions_(self) -> Array | None:
        """On a `Graph`, every node's own predictions of the last task; None with a centre."""
        return self.state_.views

    @property
    def n_features_in_(self) -> int:
        """Columns of the stream."""
        return self.state_.schema.n_features

    @property
    def feature_names_in_(self) -> Array:
        """Their names, where they have any."""
        names = self.state_.schema.names
        if names is None:
            raise AttributeError("the columns of this stream have no names")
        return np.array(names, dtype=object)

    @property
    def network_(self) -> Network:
        """The live network that carries the stream."""
        check_is_fitted(self)
        return self._held.connection.network
