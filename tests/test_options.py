"""Solvers as objects: they can be printed, pasted, searched over, and are checked when fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import conche
from conche import ConcheRegressor, Damped, ElasticNet, Exact, Memory
from conche.common.arrays import Array

OPTIONS = [
    Exact(),
    Exact(local_steps=5),
    Damped(),
    Damped(0.5, local_steps=3),
    Memory(),
    Memory(rank=0, ridge=1e-3, discount=0.99),
    Memory(300, 2.0, 0.5),
    ElasticNet(0.1),
    ElasticNet(alpha=1e-7, l1_ratio=1.0),
]


def data(n: int = 40, p: int = 8) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) + 0.1 * rng.standard_normal(n)


def pasted(thing: Any) -> Any:
    """What a user gets who copies the printed text."""
    return eval(repr(thing), {name: getattr(conche, name) for name in conche.__all__})


@pytest.mark.parametrize("option", OPTIONS, ids=repr)
def test_what_is_printed_can_be_pasted(option: Any) -> None:
    again = pasted(option)
    assert type(again) is type(option) and again.get_params() == option.get_params()
    model = conche.CoCoARegressor(n_nodes=2, solver=option, n_rounds=3, partition=[3, 5])
    other = pasted(model)
    assert type(other.solver) is type(option)
    params, others = model.get_params(), other.get_params()
    assert params.pop("solver") is option and others.pop("solver") is not option
    assert params == others


def test_a_graph_can_be_pasted_too() -> None:
    graph = conche.Graph("regular", lost=0.1, mixing=2, degree=3, seed=7)
    assert repr(pasted(graph)) == repr(graph)
    model = pasted(conche.CoCoARegressor(n_nodes=4, network=graph))
    assert repr(model.network) == repr(graph)


@pytest.mark.parametrize("option", OPTIONS, ids=repr)
def test_parameters_are_read_set_and_cloned(option: Any) -> None:
    params = option.get_params()
    assert {name: getattr(option, name) for name in params} == params
    twin = clone(option)
    assert twin is not option and twin.get_params() == params
    name = sorted(params)[0]
    assert twin.set_params(**{name: 7}) is twin and getattr(twin, name) == 7
    assert option.get_params() == params
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        twin.set_params(nonsense=1)


def test_the_models_parameters_reach_into_the_solver() -> None:
    model = ConcheRegressor(n_nodes=2, solver=Memory(rank=5))
    assert model.get_params()["solver__rank"] == 5
    assert model.get_params(deep=False)["solver"] is model.solver
    model.set_params(solver__rank=9, solver__discount=0.5, n_rounds=3)
    assert repr(model.solver) == "Memory(discount=0.5, rank=9)" and model.n_rounds == 3
    model.set_params(solver=Damped(), solver__damping=2.0)
    assert repr(model.solver) == "Damped(damping=2.0)"
    twin = clone(model)
    assert twin.solver is not model.solver and twin.solver.get_params() == model.solver.get_params()


def test_they_reach_a_solver_given_by_name() -> None:
    model = ConcheRegressor(n_nodes=2)
    assert model.solver == "memory" and "solver__rank" not in model.get_params()
    model.set_params(solver__rank=9).set_params(solver__discount=0.5)
    assert repr(model.solver) == "Memory(discount=0.5, rank=9)"
    model.set_params(solver="elastic-net", solver__alpha=0.1)
    assert repr(model.solver) == "ElasticNet(alpha=0.1)"
    model.set_params(solver="elastic-net", solver__l1_ratio=1.0)
    assert repr(model.solver) == "ElasticNet(l1_ratio=1.0)"
    for solver, wrong, said in (
        ("memory", dict(solver__alpha=1), "solver='memory' does not take alpha"),
        ("exact", dict(solver__ridge=1.0), "solver='exact' does not take ridge"),
        ("elastic-net", dict(solver__ridge=1.0), "solver='elastic-net' does not take ridge"),
        ("magic", dict(solver__rank=1), "solver='magic' must be one of"),
    ):
        model = ConcheRegressor(solver=solver)
        with pytest.raises(conche.ParameterError, match=said):
            model.set_params(**wrong)
        assert model.solver == solver


@pytest.mark.parametrize("solver", ["memory", Memory(), Memory(rank=3)], ids=repr)
def test_a_grid_search_over_a_solvers_parameter(solver: Any) -> None:
    X, y = data()
    search = GridSearchCV(
        ConcheRegressor(n_nodes=2, solver=solver), {"solver__rank": [0, 5]}, cv=2
    ).fit(X, y)
    assert search.best_params_["solver__rank"] in (0, 5)
    halves = [(slice(20, 40), slice(0, 20)), (slice(0, 20), slice(20, 40))]
    for rank, score in zip((0, 5), search.cv_results_["mean_test_score"], strict=True):
        model = ConcheRegressor(n_nodes=2, solver=Memory(rank=rank))
        expected = [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in halves]
        assert score == pytest.approx(np.mean(expected), rel=1e-12)
    best = search.best_estimator_
    assert best.solver.rank == search.best_params_["solver__rank"]
    assert search.estimator.solver is solver  # as it was


def test_the_default_grid_search_and_one_through_a_pipeline() -> None:
    X, y = data()
    plain = GridSearchCV(ConcheRegressor(n_nodes=2), {"solver__rank": [0, 5]}).fit(X, y)
    assert len(plain.cv_results_["params"]) == 2 and np.all(
        np.isfinite(plain.cv_results_["mean_test_score"])
    )
    pipe = conche.StreamPipeline([("same", "passthrough"), ("model", ConcheRegressor(n_nodes=2))])
    through = GridSearchCV(pipe, {"model__solver__rank": [0, 5]}).fit(X, y)
    np.testing.assert_array_equal(
        through.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_names_are_short_for_objects() -> None:
    X, y = data()
    for name, option in (("exact", Exact()), ("damped", Damped()), ("memory", Memory())):
        short, long = (conche.CoCoARegressor(n_nodes=2, solver=s) for s in (name, option))
        assert np.array_equal(short.fit(X, y).coef_, long.fit(X, y).coef_)
        long.set_params(solver=name).partial_fit(X + 1, y)  # the same stream: it goes on
    assert ConcheRegressor().solver == conche.ConcheClassifier().solver == "memory"


MUCH: Any = "much"  # what types would refuse
HALF: Any = 2.5
NOTHING: Any = None
WRONG: list[tuple[dict[str, Any], str]] = [
    (dict(solver=Memory(rank=-1)), "rank=-1 must be a whole number of at least 0"),
    (dict(solver=Memory(rank=True)), "rank=True must be a whole number"),
    (
        dict(solver=Memory(discount=1.5)),
        "discount=1.5 must be a number of at least 0 and at most 1",
    ),
    (dict(solver=Memory(ridge=-2)), "ridge=-2 must be a number of at least 0"),
    (dict(solver=Memory(ridge=MUCH)), "ridge='much' must be a number"),
    (dict(solver=Damped(damping=-1)), "damping=-1 must be a number of at least 0"),
    (dict(solver=Damped(damping=float("nan"))), "damping=nan must be a number of at least 0"),
    (dict(solver=Damped(local_steps=0)), "local_steps=0 must be a whole number of at least 1"),
    (dict(solver=Exact(local_steps=HALF)), "local_steps=2.5 must be a whole number"),
    (dict(solver=ElasticNet(alpha=0)), "alpha=0 must be a number of at least 1e-100, or 'auto'"),
    (dict(solver=ElasticNet(alpha=-1)), "alpha=-1 must be a number"),
    (dict(solver=ElasticNet(alpha=NOTHING)), "alpha=None must be a number"),
    (dict(solver=ElasticNet(0.1, l1_ratio=2)), "l1_ratio=2 must be a number .* at most 1"),
    (dict(solver="magic"), "solver='magic' must be one of .* or a solver object"),
    (dict(solver=None), "solver=None must be one of"),
    (dict(solver=Memory), "solver=<class .*Memory'> must be one of"),
    (dict(steps="nesterov"), "steps='nesterov' must be one of 'safe', 'adaptive', 'cg'"),
    (dict(steps=None), "steps=None must be one of"),
    (dict(steps="cg", solver=ElasticNet(0.1, rank=0)), "steps='cg' is not for plain rounds"),
    (dict(steps="cg", network=conche.Graph()), "steps='cg': a Graph has no centre"),
    (dict(steps="adaptive", network=conche.Graph()), "steps='adaptive': a Graph has no centre"),
    (dict(solver=ElasticNet(0.1), network=conche.Graph()), "'elastic-net' is not for a Graph"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_cannot_be_is_built_and_refused_when_fitted(
    options: dict[str, Any], said: str
) -> None:
    """As scikit-learn has it: constructors check nothing. The message is one line."""
    X, y = data()
    model = conche.CoCoARegressor(n_nodes=2, **options)
    clone(model)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(conche.ParameterError, match=said) as error:
            call(X, y)
        assert "\n" not in str(error.value)
        assert not hasattr(model, "state_")
    labels = conche.CoCoAClassifier(n_nodes=2, **options)
    with pytest.raises(conche.ParameterError, match=said):
        labels.fit(X, y > 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [wrong for wrong in WRONG if "network" not in wrong[0]],
    ids=[said for options, said in WRONG if "network" not in options],
)
def test_a_stream_that_is_given_what_cannot_be_stays_as_it_was(
    options: dict[str, Any], said: str
) -> None:
    X, y = data()
    model = conche.CoCoARegressor(n_nodes=2).partial_fit(X, y)
    state, before = model.state_, {name: getattr(model, name) for name in options}
    with pytest.raises(conche.ParameterError):
        model.set_params(**options).partial_fit(X, y)
    assert model.state_ is state
    model.set_params(**before).partial_fit(X, y)
    assert model.n_tasks_seen_ == 2
