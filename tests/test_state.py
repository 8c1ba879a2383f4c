"""A stream's state is one value: learning maps it to the next, failing leaves it as it was."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import conche
from conche.common.arrays import Array
from conche.estimators.state import StreamState
from conche.network import LocalNetwork
from conche.nodes import Node, Proposal
from conche.nodes.solvers import Context
from conche.nodes.solvers.base import Meeting
from conche.past_file import past_arrays


class OnlySums(LocalNetwork):
    """A local network whose coordinator sees sums over nodes alone: they turn their columns."""

    secure = True


MODELS: dict[str, Any] = {
    "exact": conche.CoCoARegressor(n_nodes=2, n_rounds=2),
    "damped, scaled": conche.CoCoARegressor(
        n_nodes=3,
        solver="damped",
        fit_intercept=True,
        scaling="running",
        missing="mean",
    ),
    "memory": conche.ConcheRegressor(n_nodes=2),
    "memory, settling": conche.ConcheRegressor(n_nodes=2, scaling="running", fit_intercept=True),
    "memory, turned": conche.ConcheRegressor(
        n_nodes=2, network=OnlySums(), solver=conche.Memory(ridge=1.0)
    ),
    "wide memory": conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(rank=3), tol=None),
    "elastic net": conche.CoCoARegressor(
        n_nodes=2, n_rounds=3, solver=conche.ElasticNet(0.01), steps="adaptive"
    ),
    "labels": conche.ConcheClassifier(n_nodes=2, loss="logistic"),
    "a ring": conche.CoCoARegressor(n_nodes=4, n_rounds=5, network=conche.Graph("ring", lost=0.2)),
    "threads": conche.ConcheRegressor(
        n_nodes=4,
        network=LocalNetwork(n_threads=2),
        solver=conche.Memory(rank=0, ridge=1.0),
        tol=None,
        n_rounds=10,
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def data(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((30, 8)), rng.standard_normal(30)


def tasks_for(name: str, count: int = 4) -> list[tuple[Array, Array]]:
    """For threads, tasks that are worth them; the first of three samples where scales settle."""
    rng = np.random.default_rng(3)
    rows, p = (600, 480) if name == "threads" else (30, 8)
    tasks = []
    for t in range(count):
        n = 3 if name == "memory, settling" and t == 0 else rows
        X, y = rng.standard_normal((n, p)) * (1 + t), rng.standard_normal(n)
        tasks.append((X, np.where(y > 0, 1, -1) if name == "labels" else y))
    return tasks


def learnt(name: str, count: int) -> Any:
    model = clone(MODELS[name])
    for X, y in tasks_for(name)[:count]:
        model.partial_fit(X, y)
    return model


def arrays_of(state: StreamState) -> list[Array]:
    """Everything in the state that could be written to."""
    assert state.coefficients is not None
    past = [] if state.past is None else list(past_arrays(state.past, None).values())
    nodes = [array for node in state.nodes for array in node.to_arrays().values()]
    known = (a for a in state.coefficients if a is not None)
    return [*nodes, *past, *known, state.coef, state.intercept]


def assert_same(one: Any, other: Any) -> None:
    """To the last bit: estimate, states, and records but for the time that they took."""
    rtol = 1e-9 if one.state_.turned else 0.0
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=rtol)
    if one.state_.turned:  # by numbers that each stream draws for itself
        np.testing.assert_allclose(one.ridge_, other.ridge_, rtol=1e-9)
    else:
        assert one.state_.damping == other.state_.damping
        for a, b in zip(arrays_of(one.state_), arrays_of(other.state_), strict=True):
            assert np.array_equal(a, b)
    for records, others in ((one.history_, other.history_), (one.tasks_, other.tasks_)):
        assert [r | {"seconds": 0} for r in records] == [r | {"seconds": 0} for r in others]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("method", ["begin", "factorise", "propose", "accept", "end"])
@every_model
def test_an_interrupt_anywhere_in_a_task_leaves_the_model_as_it_was(
    name: str, method: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has the very same state as before, and goes on to the last bit."""
    model = learnt(name, 2)
    state, kept = model.state_, [a.copy() for a in arrays_of(model.state_)]
    third = tasks_for(name)[2]
    meeting = model.state_.setup.solver.meeting
    sums, one = meeting is Meeting.SUMS, meeting is Meeting.POOL
    if sums:
        method = {"propose": "ask", "accept": "ask"}.get(method, method)
        one = not model.state_.turned
    if meeting is Meeting.CANDIDATES:  # there it solves, and asks and tells
        method = {"propose": "ask", "accept": "move"}.get(method, method)
    real = getattr(Node, method)

    def interrupted(self: Node, *arguments: Any) -> Any:
        if self.number != 1 and not one:  # there one node has all columns
            return real(self, *arguments)
        if after:
            real(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Node, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*third)
    assert model.state_ is state
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(state), kept, strict=True))
    assert_same(model.partial_fit(*third), learnt(name, 3))


def test_a_thread_that_outlives_an_interrupt_disturbs_no_later_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One share of the nodes is interrupted; another still factorises when the next task is in its
    rounds."""
    model, third = learnt("threads", 2), tasks_for("threads")[2]
    first, _, slow, _ = model.network_.host.nodes
    next_task, late = threading.Event(), threading.Event()
    factorise, propose = Node.factorise, Node.propose

    def interrupted(node: Node, context: Context) -> None:
        if node is first:
            raise KeyboardInterrupt
        if node is slow:
            next_task.wait(5)
        try:
            factorise(node, context)
        finally:
            if node is slow:
                late.set()

    asked = 0

    def in_between(node: Node, g: Array) -> Proposal:
        nonlocal asked
        asked += 1
        if asked == 13:  # the fourth round
            next_task.set()
            late.wait(5)
        return propose(node, g)

    with monkeypatch.context() as patch:
        patch.setattr(Node, "factorise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*third)
    with monkeypatch.context() as patch:
        patch.setattr(Node, "propose", in_between)
        model.partial_fit(*third)
    assert late.is_set()
    assert_same(model, learnt("threads", 3))


@pytest.mark.parametrize("method", ["begin", "factorise", "ask", "end"])
def test_an_interrupt_in_the_first_task_leaves_nothing(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = conche.ConcheRegressor(n_nodes=2)
    real = getattr(Node, method)

    def interrupted(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Node, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*data())
    assert not hasattr(model, "state_") and not hasattr(model, "coef_")
    model.set_params(n_nodes=4, network=LocalNetwork())  # nothing was begun: anything may change
    other = conche.ConcheRegressor(n_nodes=4).partial_fit(*data())
    assert_same(model.partial_fit(*data()), other)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@every_model
def test_a_task_that_fails_leaves_the_model_as_it_was(name: str, call: str) -> None:
    model = learnt(name, 2)
    state, (X, y) = model.state_, tasks_for(name)[2]
    bad = X.copy()
    bad[:, 1] = np.inf
    with np.errstate(all="ignore"), pytest.raises(conche.DataError):
        getattr(model, call)(bad, y)
    assert model.state_ is state
    if name != "labels":  # whose targets cannot be too large
        with np.errstate(all="ignore"), pytest.raises(conche.DataError):
            getattr(model, call)(X, np.full(len(y), 1e200))
        assert model.state_ is state
    assert_same(model.partial_fit(X, y), learnt(name, 3))


def test_a_failed_fit_gives_a_network_object_back_its_nodes() -> None:
    (X, y), (X2, y2) = data(), data(seed=1)
    model = conche.CoCoARegressor(network=LocalNetwork(), n_nodes=2).fit(X, y)
    with np.errstate(all="ignore"), pytest.raises(conche.DivergenceError):
        model.fit(X * 1e-200, y * 1e148)
    undisturbed = conche.CoCoARegressor(n_nodes=2).fit(X, y).partial_fit(X2, y2)
    assert_same(model.partial_fit(X2, y2), undisturbed)


def test_a_failed_fit_with_other_parameters_leaves_the_old_stream_able_to_go_on() -> None:
    (X, y), (X2, y2) = data(), data(seed=1)
    model = conche.CoCoARegressor(n_nodes=2).fit(X, y)
    state, network = model.state_, model.network_
    model.set_params(n_nodes=4, fit_intercept=True, network=LocalNetwork())
    with np.errstate(all="ignore"), pytest.raises(conche.DivergenceError):
        model.fit(X * 1e-200, y * 1e148)
    assert model.state_ is state and model.network_ is network
    model.set_params(n_nodes=2, fit_intercept=False, network="local")
    undisturbed = conche.CoCoARegressor(n_nodes=2).fit(X, y).partial_fit(X2, y2)
    assert_same(model.partial_fit(X2, y2), undisturbed)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@every_model
def test_copies_go_on_independently(name: str, copied: Callable[[Any], Any]) -> None:
    model, tasks = learnt(name, 2), tasks_for(name)
    state, other = model.state_, copied(model)
    if copied is copy.deepcopy:
        assert other.state_ is state  # a value is shared
    other.partial_fit(*tasks[2])
    assert model.state_ is state and model.n_tasks_seen_ == 2
    assert_same(model, learnt(name, 2))
    model.partial_fit(*tasks[2])
    assert_same(model, other)
    model.partial_fit(*tasks[3])
    assert other.n_tasks_seen_ == 3
    assert_same(other.partial_fit(*tasks[3]), model)


@every_model
def test_the_state_is_frozen_and_nobody_changes_its_arrays(name: str) -> None:
    model = learnt(name, 2)
    state, kept = model.state_, [a.copy() for a in arrays_of(model.state_)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.agreed = 1.0
    for X, y in tasks_for(name)[2:]:
        model.partial_fit(X, y).predict(X)
    assert model.state_ is not state
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(state), kept, strict=True))


@every_model
def test_an_old_state_may_be_taken_up_again(name: str) -> None:
    model, tasks = learnt(name, 2), tasks_for(name)
    old = model.state_
    model.partial_fit(*tasks[2])
    again = clone(MODELS[name])
    again.go_on(dataclasses.replace(old, nodes=model.node_states(old)))
    assert_same(again, learnt(name, 2))
    assert_same(again.partial_fit(*tasks[2]), model)


@pytest.mark.parametrize("close", [False, True])
def test_a_network_object_carries_several_streams_in_turn(close: bool) -> None:
    """Whatever it did for another model in between, and even if it was closed."""
    tasks, network = [data(seed=seed) for seed in range(3)], LocalNetwork()
    kinds = [
        conche.ConcheRegressor(n_nodes=2),
        conche.CoCoARegressor(n_nodes=4, fit_intercept=True),
    ]
    shared = [clone(model) for model in kinds]
    for model in shared:
        model.network = network
    alone = [clone(model) for model in kinds]
    for X, y in tasks:
        for sign, one, other in zip((1, -1), shared, alone, strict=True):
            one.partial_fit(X, sign * y)
            other.partial_fit(X, sign * y)
            if close:
                network.close()
    for one, other in zip(shared, alone, strict=True):
        assert one.network_ is network
        assert_same(one, other)
    assert_same(shared[0].fit(*tasks[0]), clone(kinds[0]).fit(*tasks[0]))  # one starts over
    assert_same(shared[1].partial_fit(*tasks[0]), alone[1].partial_fit(*tasks[0]))
