"""Secure sums: the same results, and what leaves a worker is noise."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import conche
from conche.common.arrays import Array
from conche.network import ray_crew
from conche.network.secure import Sums, Veil, Veiled
from conche.network.words import LARGEST, MOST_WORKERS, Form, Shape, counts_of
from conche.nodes import Setup
from conche.nodes.solvers.mixing import SHARED_SECRET

from .helpers.engine_battery import same_memory, states
from .helpers.veiled import Together, VeiledNetwork, any_stream, apart, learnt
from .test_engines import Counted, mpi, mpiexec
from .test_faults import Moment, accidents, both, moments, strike

pytest.importorskip("cryptography", reason="cryptography is not installed (conche[secure])")


def met(count: int) -> list[Veil]:
    veils = [Veil() for _ in range(count)]
    for veil in veils:
        veil.meet([one.public() for one in veils])
    return veils


def summed(sums: Sums, veils: list[Veil], each: list[list[Array]], name: str = "x") -> list[Array]:
    """What the coordinator makes of the workers' masked arrays."""

    def ask(scales: tuple[int, ...] | None) -> Veiled:
        message = sums.next_message()
        sent = [veil.sent(message, scales, own) for veil, own in zip(veils, each, strict=True)]
        return sent[0]._replace(words=sum(one.words for one in sent))

    found: list[Array] = sums.total(name, ask)
    return found


@pytest.mark.parametrize("size", [1e-40, 1e-6, 1.0, 1e9, 1e40])
def test_sums_are_those_of_numbers_of_any_size(size: float) -> None:
    """To the bound that is stated; few numbers exactly, whatever stands beside them."""
    rng, sums, veils = np.random.default_rng(0), Sums(), met(5)
    for _ in range(4):
        each = [
            [
                size * rng.standard_normal((300, 2)) * [1, 1e7],
                rng.standard_normal(4) * 1e-20,
                np.ones(1),
            ]
            for _ in veils
        ]
        vectors, few, ones = summed(sums, veils, each)
        bound = sum(np.max(np.abs(own[0]), axis=0) for own in each)
        exact = np.sum([own[0] for own in each], axis=0)
        assert np.all(np.abs(vectors - exact) <= len(veils) * (2.0**-49 * bound + 2.0**-176))
        np.testing.assert_allclose(few, np.sum([own[1] for own in each], axis=0), rtol=1e-14)
        assert ones == [5.0]


def test_no_sum_overflows_however_many_there_are() -> None:
    """The largest numbers that are sent, from as many workers as there may be."""
    arrays = [np.full((50, 1), -LARGEST), np.full(3, LARGEST)]
    form = Form(tuple(map(Shape.of, arrays)))
    many = np.uint64(MOST_WORKERS)
    _, scales = form.read(form.write(arrays, None) * many, None)
    found, _ = form.read(form.write(arrays, scales) * many, scales)
    assert found is not None
    assert np.all(found[0] == -LARGEST * MOST_WORKERS) and np.all(
        found[1] == LARGEST * MOST_WORKERS
    )
    assert (
        form.read(form.write(arrays, (0,)) * many, (0,))[0] is None
    )  # a scale that does not serve


def test_scales_of_longer_columns_are_not_those_of_few_numbers() -> None:
    """Outputs become fewer: what was long columns is few numbers."""
    sums, veils = Sums(), met(2)
    for width in (27, 3, 27):
        (found,) = summed(sums, veils, [[np.arange(width) / 3.0]] * 2)
        np.testing.assert_allclose(found, 2 * np.arange(width) / 3.0, rtol=1e-14)


def test_a_scale_that_does_not_serve_shows_nothing_of_the_others() -> None:
    """A worker whose numbers are too large for it, or none, does not leave the others alone."""
    sums: list[Array] = []
    for large in (1e9, np.nan):
        each = [[np.full((4000, 1), size)] for size in (large, 1.0)]
        form = Form((Shape.of(each[0][0]),))
        words = sum(form.write(own, (50,)) for own in each)
        assert form.read(words, (50,))[0] is None or np.isnan(large)
        sums.append(words[form.ends[0] :])
    assert all(looks_random(words) for words in sums)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_what_is_no_number_is_none_in_the_sum(wrong: float) -> None:
    veils, sums = met(2), Sums()
    each = [[np.ones((40, 1)), np.ones(2)], [np.ones((40, 1)), np.ones(2)]]
    each[0][0][7], each[1][1][1] = wrong, wrong
    vectors, few = summed(sums, veils, each)
    assert np.all(np.isnan(vectors)) and few[0] == 2 and np.isnan(few[1])


def test_the_largest_is_found_exactly() -> None:
    rng, sums, veils = np.random.default_rng(0), Sums(), met(4)
    for _ in range(10):
        each = [np.exp(20 * rng.standard_normal(2)) * rng.integers(0, 2) for _ in veils]

        def ask(level: int, known: Any, each: list[Array] = each) -> Veiled:
            number = sums.next_message()
            pairs = zip(veils, each, strict=True)
            words = sum(veil.digits(number, level, known, own).words for veil, own in pairs)
            assert counts_of(words).sum(axis=1).max() <= len(veils)
            return Veiled(words, (), None)

        assert np.array_equal(sums.largest(ask), np.max(each, axis=0))


def test_masks_are_used_once_and_keys_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = met(2)
    words = np.zeros(4, dtype=np.uint64)
    first.hide(3, words)
    for message in (3, 2):
        with pytest.raises(conche.NetworkError, match="after 3"):
            first.hide(message, words)
    with pytest.raises(conche.NetworkError, match="belong together"):
        first.meet([second.public(), second.public()])
    # a coordinator that puts keys of its own in between does not know what the workers share
    for secrets, cancel in ((("a", "a"), True), (("a", "b"), False)):
        veils = [Veil(), Veil()]
        for veil, secret in zip(veils, secrets, strict=True):
            monkeypatch.setenv(SHARED_SECRET, secret)
            veil.meet([one.public() for one in veils])
        assert np.all(sum(veil.hide(1, words) for veil in veils) == 0) == cancel


def looks_random(words: Array) -> bool:
    """Bytes, bits at every place, and neighbours: chance makes this false once in a million."""
    raw = words.view(np.uint8)
    by_value = stats.chisquare(np.bincount(raw, minlength=256)).pvalue
    bits = np.unpackbits(raw.reshape(-1, 8), axis=1)
    by_place = stats.chisquare(
        np.stack([bits.sum(axis=0), len(bits) - bits.sum(axis=0)]), len(bits) / 2
    ).pvalue.min()
    pairs = np.bincount(16 * (raw[:-1] >> 4) + (raw[1:] >> 4), minlength=256)
    return bool(min(by_value, 64 * by_place, stats.chisquare(pairs).pvalue) > 1e-6 / 3)


@pytest.fixture(scope="module")
def secure(network: Any) -> Iterator[Any]:
    """Three workers of five nodes."""
    from conche.network.ray import RayNetwork

    secure = RayNetwork(timeout=20, workers=["b", "a", "b", "a", "c"], secure=True)
    yield secure
    secure.close()


def test_what_the_driver_gets_from_one_worker_is_noise(
    secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a worker answers in a stream, of numbers that are anything but random: the words it
    sends, and the sums, as a control."""
    heard: list[Array] = []
    real = type(secure)._all

    def listening(self: Any, method: str, *call: Any, **options: Any) -> list[Any]:
        answers: list[Any] = real(self, method, *call, **options)
        assert method in {"reset", "pid", "key", "meet", "masked", "digits", "end"}, method
        if method in ("masked", "digits"):
            heard.append(np.stack([answer.words for answer in answers]))
        return answers

    monkeypatch.setattr(type(secure), "_all", listening)
    X, y = np.ones((600, 10)), np.arange(600.0)
    X[:, ::2] = np.arange(600)[:, None] % np.arange(2, 7)
    for solver in ("damped", conche.Memory(rank=4), "memory"):
        model = conche.CoCoARegressor(5, solver=solver, n_rounds=15, steps="cg", network=secure)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X, y).partial_fit(2 * X, -y)
    for w in range(3):
        words = np.concatenate([some[w] for some in heard])
        assert len(words) > 40_000 and looks_random(words)
    assert not looks_random(np.concatenate([some.sum(axis=0, dtype=np.uint64) for some in heard]))


KILLED = moments(("begin", 2, 0), ("propose", 3, 7), ("propose", 4, 20), ("end", 4, 0))
MERGED: list[Moment] = [("begin", 2), ("ask", 9), ("ask", 30), ("propose", 50), ("end", 4)]


@pytest.mark.parametrize(
    ("struck", "how", "solver"),
    [
        (KILLED, signal.SIGKILL, conche.Memory(rank=0, discount=0.1)),
        (MERGED, signal.SIGKILL, conche.Memory(rank=20, ridge=1.0)),
        (KILLED[:2], signal.SIGSTOP, conche.Memory(rank=0, discount=0.1)),
    ],
)
def test_a_worker_that_vanishes_is_restored_with_new_keys(
    secure: Any, struck: list[Moment], how: signal.Signals, solver: conche.Memory
) -> None:
    before, secure.timeout = secure.failures, 20 if how == signal.SIGKILL else 1.0
    try:
        with accidents(secure, how, struck) as left, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here, there = both(secure, n_nodes=5, solver=solver, steps="cg")
    finally:
        secure.timeout = 20
    assert left == [] and secure.failures >= before + len(struck)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-9
    assert same_memory(states(here), states(there))


MIXED: list[Moment] = [("begin", 2), ("ask", 3), ("ask", 5), ("ask", 8), ("end", 4), ("end", 6)]


def test_a_worker_that_vanishes_with_what_it_has_drawn(secure: Any) -> None:
    """Lossless memory: the task is learnt again, and the result is what nodes that turn their
    columns give anywhere."""
    before = secure.failures
    with accidents(secure, signal.SIGKILL, list(MIXED)) as left:
        here, there = both(secure, n_nodes=5, local=Together(), solver="memory", steps="cg")
    assert left == [] and secure.failures >= before + len(MIXED)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-9 * np.max(np.abs(here.coef_))


def test_a_worker_that_always_takes_along_what_it_has_drawn(
    secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task is learnt again a few times, and not for ever."""
    task = conche.gaussian_tasks(1, 40, 10, n_shared=6, noise_var=0.1)[0]
    real = type(secure)._send

    def send(self: Any, w: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        if method == "masked" and call[3] == "total" and call[5] == "columns" and w == 1:
            strike(self, w, signal.SIGKILL)
        return real(self, w, method, call, returns)

    with monkeypatch.context() as patch:
        patch.setattr(type(secure), "_send", send)
        with pytest.raises(conche.NodeError, match="what its nodes had drawn is lost"):
            conche.ConcheRegressor(5, network=secure).fit(task.X, task.y)
    conche.ConcheRegressor(5, network=secure).fit(task.X, task.y)


def test_a_task_whose_worker_always_fails_is_abandoned(
    secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line; the model is as it was, and goes on."""
    tasks = conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (conche.CoCoARegressor(5, n_rounds=3, network=n) for n in ("local", secure))
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    before, real = there.coef_.copy(), type(secure)._send

    def send(self: Any, w: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        if method == "masked" and call[3] == "propose" and w == 1:
            strike(self, w, signal.SIGKILL)
        return real(self, w, method, call, returns)

    secure.retries = 1
    with monkeypatch.context() as patch:
        patch.setattr(type(secure), "_send", send)
        with pytest.raises(conche.NodeError, match=r"worker 'a' \(nodes 1, 3\) failed 2 time"):
            there.partial_fit(tasks[1].X, tasks[1].y)
    secure.retries = 3
    assert np.array_equal(there.coef_, before)
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-9


def test_secure_sums_in_a_tree(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from conche.network.ray import RayNetwork

    monkeypatch.setattr(ray_crew, "FAN", 2)
    tree = RayNetwork(timeout=20, secure=True)
    with accidents(tree, signal.SIGKILL, [("propose", 10), ("propose", 37)]) as left:
        solver = conche.Memory(rank=0, discount=0.1)
        here, there = both(tree, n_nodes=5, solver=solver, steps="cg")
    tree.close()
    assert left == [] and tree.failures >= 2
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-9


def random_stream(rng: np.random.Generator) -> tuple[type[Any], dict[str, Any], list[Any]]:
    """An estimator, its parameters, and tasks; in any unit."""
    solvers: list[dict[str, Any]] = [
        dict(solver="exact"),
        dict(solver="damped", steps="cg", scaling="first"),
        dict(solver=conche.Memory(rank=0), steps="cg", scaling="first"),
        dict(solver=conche.Memory(ridge=1.0), fit_intercept=True, scaling="first"),
        dict(solver=conche.Memory(rank=5, ridge=1.0), steps="cg", scaling="running"),
        dict(solver=conche.ElasticNet(0.05, rank=0)),
    ]
    n, p = int(rng.integers(10, 80)), int(rng.integers(6, 30))
    options = solvers[rng.integers(len(solvers))] | dict(n_nodes=int(rng.integers(2, 6)))
    options |= dict(n_rounds=int(rng.integers(2, 12)))
    units = 10.0 ** rng.uniform(-3, 3, p)
    tasks = [(rng.standard_normal((n, p)) * units, rng.standard_normal(n)) for _ in range(3)]
    if options["solver"] == "exact":
        tasks = [(X / units, y) for X, y in tasks]
    # a lossless memory of labels keeps directions with secure sums, and columns without
    lossless = getattr(options["solver"], "rank", 0) is None
    if rng.random() < 0.25 and not lossless and "ElasticNet" not in str(options["solver"]):
        labels = [(X, (y > 0).astype(int) + (y > 1)) for X, y in tasks]
        return conche.CoCoAClassifier, options | {"loss": "logistic"}, labels
    return conche.CoCoARegressor, options, tasks


def streams_on_a_rank() -> None:
    """Run by every rank: 200 streams with secure sums and without."""
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    warnings.simplefilter("ignore")
    networks = [MPINetwork(), MPINetwork(secure=True)]
    worst = 0.0
    for seed in range(200):
        kind, options, tasks = random_stream(np.random.default_rng(seed))
        plain, hidden = (kind(network=network, **options) for network in networks)
        for X, y in tasks:
            plain.partial_fit(X, y)
            hidden.partial_fit(X, y)
        size = max(float(np.max(np.abs(plain.coef_))), 1e-300)
        apart = float(np.max(np.abs(plain.coef_ - hidden.coef_))) / size
        assert apart <= 1e-9, (seed, apart, kind, options)
        worst = max(worst, apart)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(f"{worst:.1e}")


@mpi
def test_200_streams_are_learnt_as_without() -> None:
    done = mpiexec(2, "-c", "from tests.test_secure import streams_on_a_rank as c; c()")
    assert done.returncode == 0 and float(done.stdout) <= 1e-9, done.stderr


def test_200_streams_of_memory_are_learnt_as_by_nodes_that_turn_their_columns() -> None:
    """With secure sums, and with sums as they are: regressors and classifiers, two targets,
    weights, discounts, intercepts, scalings, a ridge that is chosen and one that is given; columns
    in units from 0.01 to 100, alike, twins, constant, late; late labels; 2 to 12 nodes."""
    warnings.simplefilter("ignore")
    for seed in range(200):
        stream = any_stream(np.random.default_rng(seed))
        turned, hidden = (learnt(stream, network) for network in (Together(), VeiledNetwork()))
        far = apart(turned, hidden, stream)
        assert far <= 1e-9, (seed, far, stream[:2])
        assert turned.state_.discount == hidden.state_.discount, (seed, stream[:2])


def defaults_on_a_rank() -> None:
    """Run by every rank: a few of those streams."""
    from conche.network.mpi import MPINetwork

    warnings.simplefilter("ignore")
    network = MPINetwork(secure=True)
    for seed in range(1000, 1020):
        stream = any_stream(np.random.default_rng(seed))
        far = apart(learnt(stream, Together()), learnt(stream, network), stream)
        assert far <= 1e-9, (seed, far, stream[:2])


@mpi
def test_secure_sums_of_ranks_give_the_default() -> None:
    done = mpiexec(2, "-c", "from tests.test_secure import defaults_on_a_rank as c; c()")
    assert done.returncode == 0, done.stderr


def test_a_given_ridge_in_units_of_the_first_rows_is_the_plain_runs() -> None:
    """Whatever the columns are, from the first task on, if that has ten rows: they have one unit
    then, turned or not. Columns that come later have not: in a plain run all rows count."""
    warnings.simplefilter("ignore")
    compared = 0
    for seed in range(300, 400):
        kind, options, tasks = any_stream(np.random.default_rng(seed))
        X = tasks[0]["X"]
        if len(X) < 10 or X.shape != (len(X), tasks[-1]["X"].shape[1]):
            continue
        ridge = [0.01, 1.0, 100.0][seed % 3]
        solver = conche.Memory(ridge=ridge, discount=options["solver"].discount)
        stream = (kind, options | {"solver": solver, "scaling": "first"}, tasks)
        plain, hidden = (learnt(stream, network) for network in ("local", VeiledNetwork()))
        assert apart(plain, hidden, stream) <= 1e-9, (seed, stream[:2])
        compared += 1
    assert compared > 50


def test_a_ridge_by_evidence_is_nearly_the_plain_runs() -> None:
    """Columns that are turned share one unit; a few per cent of what predictions differ by."""
    warnings.simplefilter("ignore")
    tasks = conche.gaussian_tasks(4, 60, 20, n_shared=12, noise_var=0.3, correlation=0.5)
    X = np.vstack([task.X for task in tasks])
    plain, hidden = (conche.ConcheRegressor(4, network=n) for n in ("local", VeiledNetwork()))
    for task in tasks:
        plain.partial_fit(task.X, task.y)
        hidden.partial_fit(task.X, task.y)
    assert np.std(plain.predict(X) - hidden.predict(X)) <= 0.03 * np.std(plain.predict(X))


class Heard(VeiledNetwork):
    """What the coordinator gets to see of columns."""

    def total(self, question: Any, *about: Any) -> Array:
        answer = super().total(question, *about)
        if question == "columns":
            self.columns = answer
        return answer


def test_turned_columns_show_inner_products_of_rows_and_nothing_else() -> None:
    """Twice the same task: the same inner products, of all nodes' columns together in their first
    unit; coordinates that have nothing in common, although seed and data are the same."""
    X, y = np.random.default_rng(0).standard_normal((30, 12)), np.arange(30.0)
    networks = Heard(), Heard()
    for network in networks:
        solver = conche.Memory(ridge=1.0)
        conche.CoCoARegressor(4, solver=solver, scaling="first", network=network).fit(X, y)
    one, other = (network.columns for network in networks)
    Z = X / X.std(axis=0)
    for columns in (one, other):
        np.testing.assert_allclose(columns @ columns.T, Z @ Z.T, atol=1e-11)
    between = np.linalg.lstsq(one, other, rcond=None)[0]
    assert np.max(np.abs(between)) < 0.95 and np.mean(between**2) > 0.5 / 12


def bytes_on_a_rank() -> None:
    """Run by every rank: what it gives away in a stream, with masks and without."""
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    class Bare(MPINetwork):
        """The same sums, without masks."""

        def start(self, setup: Setup) -> None:
            self.secure = False
            super().start(setup)
            self.secure = True

    tasks = conche.gaussian_tasks(4, 1000, 60, n_shared=40, noise_var=0.1)
    solvers: list[Any] = ["damped", *(conche.Memory(rank=rank) for rank in (0, 20, None))]
    for solver in solvers:
        sent = []
        for kind in (Bare, MPINetwork):
            comm = Counted(MPI.COMM_WORLD)
            network = kind(comm, secure=True)
            model = conche.CoCoARegressor(
                4, solver=solver, steps="cg", n_rounds=30, tol=1e-6, network=network
            )
            for task in tasks:
                model.partial_fit(task.X, task.y)
            sent.append(sum(comm.sums))
        assert sent[1] <= 1.1 * sent[0], (solver, sent)


@mpi
def test_masks_take_a_tenth_more_bytes_at_most() -> None:
    code = "import warnings; warnings.simplefilter('ignore');"
    done = mpiexec(2, "-c", code + "from tests.test_secure import bytes_on_a_rank as c; c()")
    assert done.returncode == 0, done.stderr


def test_streams_that_cannot_be_are_refused(secure: Any, tmp_path: Path) -> None:
    from conche.network.ray import RayNetwork

    task = conche.gaussian_tasks(1, 40, 10, noise_var=0.1)[0]
    one = conche.CoCoARegressor(1, network=RayNetwork(secure=True))
    with pytest.raises(conche.ParameterError, match="secure sums need two workers"):
        one.fit(task.X, task.y)
    net = conche.CoCoARegressor(5, solver=conche.ElasticNet(0.1), network=secure)
    with pytest.raises(conche.ParameterError, match="secure sums are for rank=0"):
        net.fit(task.X, task.y)
    with pytest.raises(conche.ParameterError, match="secure='yes' must be True or False"):
        RayNetwork(secure="yes")  # type: ignore[arg-type]  # not what it takes
    conche.save(conche.ConcheRegressor(5).fit(task.X, task.y), tmp_path / "m")
    with pytest.raises(conche.ModelFileError, match="cannot go on with secure sums"):
        conche.load(tmp_path / "m", network=secure)


def test_a_model_goes_on_without_secure_sums_and_with_them(secure: Any, tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    """As nodes that turn their columns learn anywhere, and nearly what they learn as they are."""
    there, here = (conche.ConcheRegressor(5, network=n) for n in (secure, Together()))
    for model in (there, here):
        model.partial_fit(tasks[0].X, tasks[0].y).partial_fit(tasks[1].X, tasks[1].y)
    conche.save(there, tmp_path / "m")
    again = [conche.load(tmp_path / "m", network=n) for n in ("local", secure)]
    for model in (there, here, *again):
        model.partial_fit(tasks[2].X, tasks[2].y)
    for model in (there, *again):
        assert np.max(np.abs(model.coef_ - here.coef_)) <= 1e-9
    shown = conche.ConcheRegressor(5)  # whose coordinator sees what single nodes send
    for task in tasks:
        shown.partial_fit(task.X, task.y)
    X = np.vstack([task.X for task in tasks])
    apart = shown.predict(X) - here.predict(X)  # their ridges are in other units
    assert np.std(apart) <= 0.03 * np.std(shown.predict(X))


def test_conche_train_says_what_is_missing(tmp_path: Path) -> None:
    code = "import sys; sys.modules['cryptography'] = None; from conche.cli.run import run; "
    code += f"run(['train', {str(tmp_path / 's')!r}, '--target', 'y', '--nodes', '2', "
    code += f"'--network', 'ray', '--secure', '--out', {str(tmp_path / 'm')!r}])"
    from .helpers.files import write

    write(tmp_path / "s", conche.gaussian_tasks(1, 40, 10))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and "conche[secure]" in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
