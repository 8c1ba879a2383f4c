"""Fitted attributes: read from the state, never set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..common.arrays import Array
from ..memory import noise
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
        if not state.settings.fit_intercept:
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
        if self.state_.past is not None:
            raise AttributeError("lossless memory has a ridge, not a damping: see ridge_")
        return self.state_.damping

    @property
    def ridge_(self) -> Array:
        """Lossless memory: the ridge, shaped like `coef_`, in the columns' own units. The weights
        minimise the squared errors of all rows plus ``ridge_`` w^2, summed over columns."""
        ridge = self._lossless("ridge_").ridge
        return ridge[0] if self.state_.flat else ridge

    @property
    def noise_std_(self) -> Any:
        """Lossless memory: the standard deviation of targets around the model, one per target."""
        state = self._lossless("noise_std_")
        assert state.past is not None
        found = np.sqrt(state.shown.among(noise(state.past.best.sums, state.solved, state.wish)))
        return float(found[0]) if state.flat else found

    def told_ridge(self) -> str | None:
        """The ridge in force, as a person can use it; None where there is none to tell."""
        state = self.state_
        if state.past is None or state.setup.homes:
            return None
        wish, scaling = state.wish, state.settings.scaling
        where = "standardised columns"
        if wish.common:
            where = (
                "columns in units of their first rows" if state.turned else "columns as they are"
            )
        elif wish.ridge is not None and scaling != "standard":
            where = (
                "columns as they are" if scaling is None else f"columns with scaling={scaling!r}"
            )
        if wish.ridge is not None:
            return f"Ridge(alpha={wish.ridge:g}) on {where}, as it was given"
        found = state.solved
        each = found.penalty.max(axis=0) if wish.common else found.ridge * state.past.best.sums.n
        each = state.shown.among(each)
        each = each[np.isfinite(each)]
        if not len(each):
            return "none: nothing varies yet, and the mean is all there is"
        low, high = f"{each.min():.3g}", f"{each.max():.3g}"
        alpha = low if low == high else f"{low} to {high}, by target"
        return f"Ridge(alpha={alpha}) on {where}, by evidence from all rows"

    def _lossless(self, name: str) -> StreamState:
        if self.state_.past is None:
            raise AttributeError(
                f"{name}: only memory that loses nothing, of squared errors, has it"
            )
        return self.state_

    @property
    def discount_(self) -> float:
        """The weight of the past per task; with ``discount="auto"``, the one that was chosen."""
        return self.state_.discount

    @property
    def offline_gap_(self) -> OfflineGap:
        """Memory and elastic nets: how far the objective of all rows is above its minimum."""
        if self.state_.past is not None:
            return replace(self.state_, found=self.state_.solved).gap()
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
