"""Estimators on other devices: whatever they learn, they learn it as NumPy does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import conche
from conche import training
from conche.common import device as devices
from conche.common.arrays import Array
from conche.memory import sums
from conche.network.ray_worker import Worker
from conche.nodes import PLAIN, Partition, Setup
from conche.nodes.solvers import Context
from conche.nodes.solvers.damped import DampedSolver

from .helpers.devices import EXTRA, Strict, gpu_names

pd = pytest.importorskip("pandas")

NAMES = [*EXTRA, *gpu_names()]
pytestmark = pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")


@pytest.fixture(autouse=True)
def known_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, maker in EXTRA.items():
        monkeypatch.setitem(devices.DEVICES, name, maker)


def stream(n: int, p: int, n_tasks: int = 3, outputs: int = 0, seed: int = 0) -> Iterator[Any]:
    """Correlated columns of different scales and origins, a drifting truth, noise."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(p, p)) / p**0.5 + np.eye(p)
    size, origin = np.exp(rng.normal(size=p)), rng.normal(size=p)
    w = rng.normal(size=(p, max(outputs, 1)))
    for _ in range(n_tasks):
        A = rng.normal(size=(n, p)) @ mix
        y = A @ w + 0.3 * rng.normal(size=(n, max(outputs, 1)))
        w = w + 0.1 * rng.normal(size=w.shape)
        yield size * A + origin, y if outputs else y[:, 0]


def labels(n: int, p: int, n_classes: int, n_tasks: int = 3, seed: int = 0) -> Iterator[Any]:
    """Classes of which the last comes with the last task."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, p))
    for task in range(n_tasks):
        there = n_classes - (task < n_tasks - 1)
        y = rng.integers(max(there, 2), size=n)
        yield centres[y] + rng.normal(size=(n, p)), y


M = conche.Memory
REGRESSORS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exact tall": ({"n_nodes": 3}, {"n": 40, "p": 12}),
    "exact wide": ({"n_nodes": 2}, {"n": 12, "p": 60}),
    "exact wide uneven": ({"partition": [30, 25, 40]}, {"n": 12, "p": 95}),
    "exact tall uneven": ({"partition": [3, 8, 5]}, {"n": 40, "p": 16}),
    "exact very uneven": ({"partition": [1, 2, 29]}, {"n": 60, "p": 32}),
    "exact one node": ({}, {"n": 40, "p": 12}),
    "exact scattered": ({"partition": [[0, 5, 2], [1, 3], [4, 6]]}, {"n": 30, "p": 7}),
    "exact intercept": ({"n_nodes": 4, "fit_intercept": True}, {"n": 40, "p": 12}),
    "exact rounds": ({"n_nodes": 3, "n_rounds": 7}, {"n": 40, "p": 12}),
    "exact cg": ({"n_nodes": 3, "n_rounds": 5, "steps": "cg"}, {"n": 40, "p": 12}),
    "exact adaptive": ({"n_nodes": 3, "n_rounds": 6, "steps": "adaptive"}, {"n": 40, "p": 12}),
    "exact outputs": ({"n_nodes": 3}, {"n": 40, "p": 12, "outputs": 3}),
    "exact float32": ({"n_nodes": 3, "n_rounds": 2}, {"n": 40, "p": 12}),
    "exact steps": ({"n_nodes": 3, "solver": conche.Exact(local_steps=3)}, {"n": 40, "p": 13}),
    "auto steps": ({"n_nodes": 3, "solver": conche.Damped(local_steps="auto")}, {"n": 40, "p": 13}),
    "exact scaled": (
        {"n_nodes": 3, "scaling": "running", "fit_intercept": True},
        {"n": 40, "p": 12},
    ),
    "damped": ({"n_nodes": 3, "solver": "damped", "n_rounds": 4}, {"n": 40, "p": 12}),
    "damped wide": ({"n_nodes": 3, "solver": "damped", "n_rounds": 4}, {"n": 10, "p": 40}),
    "damped steps": ({"n_nodes": 2, "solver": conche.Damped(1.0, 4)}, {"n": 30, "p": 9}),
}
CONCHE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lossless": ({"n_nodes": 3}, {"n": 40, "p": 12}),
    "lossless one node": ({}, {"n": 40, "p": 12}),
    "lossless few samples": ({"n_nodes": 3}, {"n": 6, "p": 20, "n_tasks": 4}),
    "lossless outputs": ({"n_nodes": 3}, {"n": 40, "p": 12, "outputs": 2}),
    "lossless damping": ({"n_nodes": 3, "solver": M(ridge=0.5)}, {"n": 40, "p": 12}),
    "lossless no damping": ({"n_nodes": 2, "solver": M(ridge=0.0)}, {"n": 40, "p": 12}),
    "few rows": ({"n_nodes": 2, "solver": M(rank=30)}, {"n": 9, "p": 40}),
    "lossless discount": ({"n_nodes": 2, "solver": M(discount=0.8)}, {"n": 40, "p": 12}),
    "lossless discounts": ({"n_nodes": 2, "solver": M(discount="auto")}, {"n": 40, "p": 12}),
    "lossless unscaled": ({"n_nodes": 2, "scaling": None}, {"n": 40, "p": 12}),
    "lossless no intercept": ({"n_nodes": 2, "fit_intercept": False}, {"n": 40, "p": 12}),
    "limited": ({"n_nodes": 3, "solver": M(rank=8)}, {"n": 20, "p": 30, "n_tasks": 4}),
    "limited uneven": (
        {"partition": [12, 8, 10], "solver": M(rank=8)},
        {"n": 20, "p": 30, "n_tasks": 4},
    ),
    "limited very uneven": (
        {"partition": [2, 25, 3], "solver": M(rank=8)},
        {"n": 20, "p": 30, "n_tasks": 4},
    ),
    "limited one node": ({"solver": M(rank=8)}, {"n": 20, "p": 30, "n_tasks": 4}),
    "limited many rows": ({"n_nodes": 3, "solver": M(rank=6)}, {"n": 90, "p": 60}),
    "limited room": ({"n_nodes": 3, "solver": M(rank=50)}, {"n": 20, "p": 60, "n_tasks": 4}),
    "limited outputs": (
        {"n_nodes": 4, "solver": M(rank=8)},
        {"n": 20, "p": 30, "n_tasks": 4, "outputs": 2},
    ),
    "limited running": (
        {"n_nodes": 3, "solver": M(rank=8, discount=0.9), "scaling": "running"},
        {"n": 20, "p": 30, "n_tasks": 4},
    ),
    "limited ten nodes": ({"n_nodes": 10, "solver": M(rank=8)}, {"n": 20, "p": 43, "n_tasks": 4}),
    "blocks alone": ({"n_nodes": 3, "solver": M(rank=0)}, {"n": 20, "p": 30, "n_tasks": 4}),
}
CLASSIFIERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "classes": ({"n_nodes": 3}, {"n": 60, "p": 10, "n_classes": 4}),
    "classes limited": ({"n_nodes": 3, "solver": M(rank=6)}, {"n": 40, "p": 24, "n_classes": 4}),
    "logistic": ({"n_nodes": 3, "loss": "logistic"}, {"n": 60, "p": 10, "n_classes": 3}),
    "logistic limited": (
        {"n_nodes": 3, "loss": "logistic", "solver": M(rank=6)},
        {"n": 40, "p": 24, "n_classes": 3},
    ),
    "two classes": ({"n_nodes": 2, "loss": "logistic"}, {"n": 60, "p": 10, "n_classes": 2}),
}


def learnt(model: Any, tasks: Any, weights: bool = False, dtype: Any = float) -> Any:
    for X, y in tasks:
        w = None
        if weights:
            w = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
        model.partial_fit(np.asarray(X, dtype), y, sample_weight=w)
    return model


def assert_same(a: Any, b: Any, digits: float = 1e-9) -> None:
    assert a.state_.setup.device != b.state_.setup.device
    scale = np.max(np.abs(a.coef_))
    np.testing.assert_allclose(b.coef_, a.coef_, rtol=0, atol=digits * scale)
    np.testing.assert_allclose(b.intercept_, a.intercept_, rtol=digits, atol=digits * 10)
    rounds = [[record["task"] for record in model.history_] for model in (a, b)]
    if rounds[0] == rounds[1]:
        assert [task["bytes"] for task in a.tasks_] == [task["bytes"] for task in b.tasks_]
    assert type(b.coef_) is np.ndarray
    first, second = (conche_bytes(model) for model in (a, b))
    assert first.keys() == second.keys()
    for key in first:
        assert first[key].shape == second[key].shape, key


def conche_bytes(model: Any) -> dict[str, Array]:
    """All nodes' arrays, as they are saved."""
    states = model.node_states()
    return {f"{k}.{name}": a for k, s in enumerate(states) for name, a in s.to_arrays().items()}


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("case", REGRESSORS)
def test_algorithm_1_and_its_kin(case: str, device: str) -> None:
    parameters, data = REGRESSORS[case]
    dtype = np.float32 if "float32" in case else float
    one, other = (
        learnt(conche.CoCoARegressor(**parameters, device=where), stream(**data), dtype=dtype)
        for where in ("cpu", device)
    )
    assert_same(one, other, 1e-9 if dtype is float else 1e-4)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("case", CONCHE)
def test_memory(case: str, weights: bool, device: str) -> None:
    parameters, data = CONCHE[case]
    if "lossless" not in case:
        # rounds end where the objective is known to 1e-12: weights to about the root of it
        parameters = parameters | {"tol": 1e-12, "n_rounds": 300}
    one, other = (
        learnt(conche.ConcheRegressor(**parameters, device=where), stream(**data), weights)
        for where in ("cpu", device)
    )
    assert_same(one, other, 1e-9 if "lossless" in case else 1e-5)
    gaps = one.offline_gap_, other.offline_gap_
    told = [[gap.bound, gap.estimate, gap.objective] for gap in gaps]
    np.testing.assert_allclose(told[1], told[0], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("case", CLASSIFIERS)
def test_classes_that_come_later(case: str, device: str) -> None:
    parameters, data = CLASSIFIERS[case]
    one, other = (
        learnt(conche.ConcheClassifier(**parameters, device=where), labels(**data))
        for where in ("cpu", device)
    )
    # what is not quadratic, or not lossless, ends at a tolerance
    assert_same(one, other, 1e-9 if case == "classes" else 1e-5)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("solver", [M(), M(rank=8), "damped"])
def test_a_stream_may_move_between_devices_and_files(
    solver: Any, device: str, tmp_path: Path
) -> None:
    """Memory goes with it, whichever way."""
    tasks = list(stream(20, 30, 4))
    model = conche.ConcheRegressor(3, solver=solver, tol=1e-12, n_rounds=300)
    still = learnt(clone(model), tasks)
    learnt(model, tasks[:1])
    model.set_params(device=device)
    learnt(model, tasks[1:2])
    assert model.state_.setup.device == device
    conche.save(model, tmp_path / "there")
    again = conche.load(tmp_path / "there", device=device)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    learnt(again, tasks[2:3])
    learnt(model, tasks[2:3])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9, atol=1e-9)
    conche.save(again, tmp_path / "again")
    back = conche.load(tmp_path / "again")
    assert back.device is None
    learnt(back, tasks[3:])
    assert back.state_.setup.device == "cpu"
    atol = 1e-5 * np.max(np.abs(still.coef_))
    np.testing.assert_allclose(back.coef_, still.coef_, rtol=0, atol=atol)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("solver", [M(), M(rank=8), "exact"])
def test_columns_that_come_and_nodes_that_leave(solver: Any, device: str) -> None:
    rng = np.random.default_rng(3)
    tasks = [(pd.DataFrame(X), y) for X, y in stream(25, 24, 4)]
    for X, _ in tasks:
        X.columns = [f"c{j}" for j in range(24)]
    order = list(rng.permutation(20)) + list(range(20, 24))
    models = []
    for where in ("cpu", device):
        model = conche.ConcheRegressor(4, solver=solver, tol=1e-12, n_rounds=300, device=where)
        for X, y in tasks[:2]:
            model.partial_fit(X.iloc[:, order[:20]], y)
        for X, y in tasks[2:]:
            model.partial_fit(X.iloc[:, order], y)
        if not isinstance(solver, str):
            model.drop_node(2)
        models.append(model.partial_fit(tasks[0][0][list(model.feature_names_in_)], tasks[0][1]))
    atol = 1e-5 * np.max(np.abs(models[0].coef_))
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, rtol=0, atol=atol)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("solver", ["exact", "memory"])
def test_missing_values_and_files(solver: str, device: str, tmp_path: Path) -> None:
    """Blocks that are read go to the device once, and have the marks that they have here."""
    rng = np.random.default_rng(5)
    for t, (X, y) in enumerate(stream(30, 9, 3)):
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
        table = pd.DataFrame(X, columns=[f"c{j}" for j in range(9)]).assign(y=y)
        table.to_csv(tmp_path / f"{t}.csv", index=False)
    files = conche.FileStream(tmp_path, "y", missing="keep")
    one, other = (
        conche.ConcheRegressor(3, solver=solver, missing="mean", device=where)
        for where in ("cpu", device)
    )
    runs = [training.begin(model, files, None, False)[1] for model in (one, other)]
    pairs = zip((one, other), runs, strict=True)
    marks = [[*training.learning(m, files, run=run)][-1].marks for m, run in pairs]
    assert len(marks[0]) == 3
    assert marks[0] == marks[1]
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9, atol=1e-9)
    X = files.task(0).X
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-8)


@pytest.mark.parametrize("device", NAMES)
def test_features_are_computed_there(device: str) -> None:
    train, _ = conche.tasks.embedded_digits(40)
    lazy, _ = conche.tasks.embedded_digits(40, lazy=True)
    one = conche.ConcheClassifier(4, device="cpu")
    other = conche.ConcheClassifier(4, device=device)
    for task, same in zip(train, lazy, strict=True):
        one.partial_fit(task.X, task.y)
        other.partial_fit(same.X, same.y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("solver", ["exact", "damped", M(rank=0)])
def test_nodes_of_a_graph_work_there(solver: Any, device: str) -> None:
    """A network that is not all in one place talks of NumPy's arrays."""
    common = {"n_nodes": 4, "solver": solver, "n_rounds": 5}
    ring = conche.Graph("ring")
    one, other = (
        learnt(conche.CoCoARegressor(**common, network=ring, device=where), stream(30, 12))
        for where in ("cpu", device)
    )
    assert_same(one, other)


@pytest.mark.parametrize("device", NAMES)
def test_a_worker_of_ray_works_there(device: str) -> None:
    """What it answers, and the state that it leaves behind, are NumPy's."""
    [(X, y)] = stream(20, 8, 1)
    setups = [
        Setup(DampedSolver(), Partition.even(8, 2), device=where) for where in ("cpu", device)
    ]
    ended = []
    for setup in setups:
        worker = Worker(setup, [1])
        opening = worker.begin([X[:, 4:]], setup.fresh(1, "float64")[1:], PLAIN)
        worker.factorise(replace(Context(0, 2, 20, 20, 1.0), damping=0.1))
        image, _ = worker.propose(None, y[:, None])
        assert type(opening.predictions) is type(image) is np.ndarray
        ended.append(worker.end((None, None), None, None))
    ([one], [state]), ([other], [same]) = ended
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-10)
    assert type(same.weights) is np.ndarray
    np.testing.assert_allclose(same.weights, state.weights, rtol=1e-10)


@pytest.mark.parametrize("case", ["sparse", "elastic net"])
def test_what_stays_on_the_processor_is_said_once(case: str) -> None:
    X, y = next(stream(30, 6))
    model = conche.CoCoARegressor(2, device="strict")
    if case == "sparse":
        X = sparse.csr_array(X)
    else:
        model.set_params(solver=conche.ElasticNet(0.1))
    with pytest.warns(
        conche.errors.DeviceWarning, match="on the processor, not on device='strict'"
    ):
        model.partial_fit(X, y)
    assert model.state_.setup.device == "cpu"
    model.partial_fit(X, y)  # a second word would be an error here
    assert model.n_tasks_seen_ == 2


def test_a_stream_that_turns_sparse_goes_on_here() -> None:
    (X, y), (more, target) = stream(30, 6, 2)
    there, here = (learnt(conche.CoCoARegressor(2, device=d), [(X, y)]) for d in ("strict", "cpu"))
    with pytest.warns(conche.errors.DeviceWarning, match="sparse columns"):
        there.partial_fit(sparse.csr_array(more), target)
    here.partial_fit(sparse.csr_array(more), target)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)


def test_a_task_that_fails_there_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Strict):
        """Its memory ends in the second task."""

        tasks = 0

        @contextmanager
        def guarded(self) -> Iterator[None]:
            try:
                yield
            except MemoryError:
                raise conche.DeviceError("the GPU's memory is not enough for this task") from None

    full = Full()
    monkeypatch.setitem(devices.DEVICES, "full", lambda place: full)
    tasks = list(stream(30, 12, 3))
    model = learnt(conche.ConcheRegressor(3, device="full"), tasks[:1])
    before, state = model.coef_.copy(), model.state_

    def short(*arguments: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(sums, "_products", short)
        with pytest.raises(conche.DeviceError, match="memory is not enough"):
            model.partial_fit(*tasks[1])
    assert model.state_ is state
    np.testing.assert_array_equal(model.coef_, before)
    learnt(model, tasks[1:])
    np.testing.assert_allclose(
        model.coef_, learnt(conche.ConcheRegressor(3), tasks).coef_, rtol=1e-9, atol=1e-9
    )


def test_devices_that_there_are_none_of() -> None:
    X, y = next(stream(30, 6))
    with pytest.raises(
        conche.ParameterError, match="device='tpu' must be one of None, 'cpu', 'cuda'"
    ):
        conche.CoCoARegressor(device="tpu").fit(X, y)
    if not gpu_names():
        with pytest.raises((conche.MissingExtraError, conche.DeviceError), match="GPU"):
            conche.CoCoARegressor(device="cuda").fit(X, y)


@pytest.mark.skipif(not gpu_names(), reason="there is no GPU")
def test_columns_that_are_there_already_are_learnt_there() -> None:
    torch = import_module("torch")
    tasks = list(stream(40, 12, 3))
    here, there = conche.ConcheRegressor(3), conche.ConcheRegressor(3)
    for X, y in tasks:
        here.partial_fit(X, y)
        there.partial_fit(torch.as_tensor(X, device="cuda"), torch.as_tensor(y, device="cuda"))
    assert there.state_.setup.device == "cuda"
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    X, y = tasks[0]
    on_gpu = torch.as_tensor(X, device="cuda")
    found = there.predict(on_gpu)
    assert found.is_cuda
    np.testing.assert_allclose(found.cpu().numpy(), here.predict(X), rtol=1e-9)
    assert type(there.predict(X)) is np.ndarray
    assert there.score(on_gpu, y) == pytest.approx(here.score(X, y))
    for wrong in (on_gpu[:, :5], on_gpu[0], torch.full_like(on_gpu, torch.nan)):
        with pytest.raises(conche.DataError):
            there.partial_fit(wrong, y)
    assert there.n_tasks_seen_ == 3
    (X, labelled), *_ = labels(40, 5, 3)
    model = conche.ConcheClassifier(2).fit(torch.as_tensor(X, device="cuda"), labelled)
    guess = model.predict(torch.as_tensor(X, device="cuda"))
    assert guess.is_cuda
    np.testing.assert_array_equal(guess.cpu().numpy(), model.predict(X))
