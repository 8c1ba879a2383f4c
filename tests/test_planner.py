"""Estimation from data, advice, and the command line around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import conche
from conche import Task
from conche.cli.words import in_options
from conche.common.arrays import Array
from conche.common.words import number
from conche.errors import CorrelationWarning, DataError, ParameterError, StreamError
from conche.paper import theory
from conche.paper.theory import Similarity, estimate
from conche.paper.theory.estimation import OneTask, estimate_task
from conche.paper.theory.survey import least_squares
from conche.planner.advice import candidate_nodes
from conche.tasks import DenseTasks

from .helpers.commands import run_here
from .helpers.files import write_stream

NUMBERS: dict[str, Any] = dict(
    n_features=1024, n_samples=2048, n_tasks=16, n_shared=768, noise_var=0.01
)


def read_stream(stream: Any) -> list[Task]:
    """All tasks of a stream on disk."""
    return list(DenseTasks(stream))


def raw_estimates(n: int, p: int, trials: int = 400) -> tuple[Array, list[OneTask]]:
    """Noise and energy estimates of single tasks, over many draws with one truth."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(p) * np.sqrt(2.0 / p)
    found = []
    for _ in range(trials):
        X = rng.standard_normal((n, p))
        y = X @ w + np.sqrt(0.5) * rng.standard_normal(n)
        found.append(estimate_task(n, X.T @ y, float(y @ y), least_squares(X, y, X.T @ X)))
    return w, found


@pytest.mark.parametrize(("n", "p"), [(40, 100), (60, 60), (120, 40)])
def test_noise_and_energy_are_unbiased_and_their_errors_honest(n: int, p: int) -> None:
    w, found = raw_estimates(n, p)
    for truth, name in ((0.5, "noise_var"), (w @ w, "energy")):
        values = np.array([getattr(one, name) for one in found])
        stated = np.mean([getattr(one, name.split("_")[0] + "_stderr") for one in found])
        stderr = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - truth) < 4 * stderr
        assert 0.6 < stated / values.std(ddof=1) < 1.6


@pytest.mark.parametrize("n", [30, 120])
def test_inner_products_are_unbiased_with_standard_errors(n: int) -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((3, 40)) / np.sqrt(40)
    W[:, :20] = W[0, :20]
    truth = np.stack([W[:, b] @ W[:, b].T for b in (slice(0, 10), slice(10, 40))], axis=-1)
    drawn, errors = [], []
    for _ in range(300):
        tasks = []
        for w in W:
            X = rng.standard_normal((n, 40))
            tasks.append(Task(X, X @ w + 0.3 * rng.standard_normal(n)))
        g, stderr = estimate(tasks).inner_products([10, 30])
        drawn.append(g)
        errors.append(stderr)
    products = np.array(drawn)
    spread = products.std(axis=0, ddof=1)
    # standardising with estimated means and deviations costs a bias of order 1/N
    assert np.all(np.abs(products.mean(axis=0) - truth) < 4 * spread / np.sqrt(300) + 2 / (3 * n))
    ratio = np.mean(errors, axis=0) / spread
    assert np.all((ratio > 0.5) & (ratio < 2))


def test_summary_of_a_stream() -> None:
    tasks = conche.gaussian_tasks(16, 400, 128, n_shared=96, noise_var=0.05)
    noise, energy, common = estimate(tasks).summary()
    assert noise == pytest.approx(0.05, rel=0.1)
    assert energy == pytest.approx(1.0, rel=0.1)
    assert common == pytest.approx(0.75, rel=0.1)


def test_units_do_not_matter_and_correlation_is_announced() -> None:
    tasks = conche.gaussian_tasks(4, 100, 20, n_shared=10)
    scale, shift = 10.0 ** np.arange(-10, 10), np.arange(20)
    moved = [Task(t.X * scale + shift, t.y + 7) for t in tasks]
    a, b = estimate(tasks).summary(), estimate(moved).summary()
    np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.warns(CorrelationWarning, match="rough guide"):
        estimate(conche.gaussian_tasks(4, 100, 20, correlation=0.8))


def test_similarity_from_tasks_predicts_the_true_error() -> None:
    """The prediction from data, averaged over streams, against the one from the truth."""
    ratios = []
    for seed in range(20):
        tasks = conche.gaussian_tasks(6, 60, 24, n_shared=12, noise_var=0.1, seed=seed)
        W = np.array([t.weights for t in tasks])
        truth = theory.generalization_error(Similarity.from_weights(W, [6] * 4), 60, 0.1)[-1]
        found = Similarity.from_tasks(tasks, [6] * 4)
        ratios.append(theory.generalization_error(found, 60, 0.1)[-1] / truth)
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(20) + 0.02


def test_drifting_streams_are_noticed() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(30) / np.sqrt(30)
    tasks = []
    for _ in range(20):
        w = 0.9 * w + np.sqrt(0.19) * rng.standard_normal(30) / np.sqrt(30)
        X = rng.standard_normal((200, 30))
        tasks.append(Task(X, X @ w + 0.1 * rng.standard_normal(200)))
    assert estimate(tasks).drift() > 6
    assert estimate(conche.gaussian_tasks(20, 200, 30, n_shared=15)).drift() < 6
    assert any("neighbouring" in a for a in conche.plan_from_tasks(tasks).assumptions)


def test_the_plan_of_the_papers_figure() -> None:
    plan = conche.plan(**NUMBERS)
    assert plan.n_nodes == 8
    assert plan.error == pytest.approx(0.270, abs=5e-4)
    assert plan.centralised == pytest.approx(0.489, abs=5e-4)
    assert [row["n_nodes"] for row in plan.table] == [2**i for i in range(11)]
    assert plan.partition == [128] * 8
    assert conche.plan(**NUMBERS) == plan
    assert "8 nodes" in str(plan)
    assert "0.489" in str(plan)


def test_more_tasks_move_the_answer() -> None:
    horizon = conche.plan(**NUMBERS).horizon
    assert [row["n_tasks"] for row in horizon] == [32, 64, None]
    nodes = [row["n_nodes"] for row in horizon]
    assert nodes == sorted(nodes)
    assert nodes[-1] == 1024
    for row in horizon[:2]:
        longer = conche.plan(**(NUMBERS | {"n_tasks": row["n_tasks"]}))
        assert (longer.n_nodes, longer.error) == (row["n_nodes"], row["error"])


def test_what_to_avoid() -> None:
    table = {r["n_nodes"]: r for r in conche.plan(64, 16, 8, 48, 0.01).table}
    assert table[4]["error"] == np.inf
    assert "unbounded" in str(table[4]["warning"])
    plan = conche.plan(40, 15, 16, 40, 0.0)
    table = {r["n_nodes"]: r for r in plan.table}
    assert table[2]["spectral_radius"] == pytest.approx(1.375)
    assert "grows with every task" in str(table[2]["warning"])
    assert table[10]["warning"] is None


def test_remedies_when_the_number_of_nodes_is_given() -> None:
    plan = conche.plan(40, 15, 16, 40, 0.01, n_nodes=2)
    assert plan.n_nodes == 2
    assert plan.error > 100
    kinds = " ".join(remedy["what"] for remedy in plan.remedies)
    assert all(word in kinds for word in ("use 1 of the 2", "unequal", "solver=Damped"))
    errors = [remedy["error"] for remedy in plan.remedies]
    assert errors == sorted(errors)
    assert errors[-1] < plan.error
    # and the best remedy is as good as it says, with the real nodes
    best = next(r for r in plan.remedies if r["what"].startswith("unequal"))
    achieved = []
    for seed in range(200):
        tasks = conche.gaussian_tasks(16, 15, 40, n_shared=40, noise_var=0.01, seed=seed)
        model = conche.CoCoARegressor(partition=best["partition"])
        for task in tasks:
            model.partial_fit(task.X, task.y)
        achieved.append(conche.generalization_error(model.coef_, tasks))
    stderr = np.std(achieved) / np.sqrt(len(achieved))
    assert abs(np.mean(achieved) - best["error"]) < 4 * stderr


def test_remedies_are_not_guesses_from_wild_samples() -> None:
    """Near |n - p_k| the moments' variance is infinite: no sampled remedy may be offered there."""
    for numbers in ((8, 6, 50, 8, 0.1), (16, 11, 16, 8, 0.1)):
        plan = conche.plan(*numbers, n_nodes=2)
        assert not any("rounds" in remedy["what"] for remedy in plan.remedies)


def test_a_single_bad_task_is_announced() -> None:
    plan = conche.plan(64, [200, 200, 64, 200, 200], 5, 32, 0.1)
    one = plan.table[0]
    assert one["error"] == np.inf
    assert "64 columns a block, 64 samples" in str(one["warning"])
    assert "against unbounded for one node" in plan.text


def test_given_nodes_are_not_called_advised() -> None:
    plan = conche.plan(100_000, 200_000, 4, 0, 1.0, n_nodes=1)
    assert plan.given
    assert not conche.plan(**NUMBERS).given
    assert number(np.inf) == "unbounded"


def test_noise_is_not_biased_by_weighing() -> None:
    levels: list[float | list[float]] = [0.25, [0.001] + [4.0] * 39]
    for noise_var in levels:
        found = [
            estimate(gaussian).summary().noise_var
            for gaussian in (
                conche.gaussian_tasks(40, 34, 20, 10, noise_var, seed=s) for s in range(12)
            )
        ]
        stderr = np.std(found, ddof=1) / np.sqrt(len(found))
        assert abs(np.mean(found) - np.mean(noise_var)) < 4 * stderr + 0.01


def test_constant_columns_are_not_correlated_and_constant_data_is_refused() -> None:
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(4):
        X = np.hstack([rng.standard_normal((300, 8)), np.full((300, 8), 0.1) * np.arange(1, 9)])
        tasks.append(Task(X, X[:, 0] + rng.standard_normal(300)))
    assert estimate(tasks).correlation < 1.25
    with pytest.raises(DataError, match="no column varies"):
        estimate([Task(np.ones((5, 3)), np.arange(5.0))])
    with pytest.raises(DataError, match="targets are constant"):
        conche.plan_from_tasks([Task(t.X, np.ones(300)) for t in tasks])
    rows = [Task(rng.standard_normal((1, 6)), rng.standard_normal(1)) for _ in range(30)]
    assert any("one row" in a for a in conche.plan_from_tasks(rows).assumptions)


def test_endless_tasks_on_blocks_of_any_size() -> None:
    for n, sizes in ((40, [5, 12, 9]), (64, [4] * 8), (3, [30, 24])):
        limit = theory.endless_error(n, sizes, 10, 0.2)
        long = Similarity.shared(20_000, sizes, 10)
        assert theory.generalization_error(long, n, 0.2)[-1] == pytest.approx(limit, rel=1e-3)
    equal = theory.corollary_4(64, 32, 8, None, 10, 0.2)
    assert theory.endless_error(64, [4] * 8, 10, 0.2) == pytest.approx(equal, rel=1e-12)
    assert theory.endless_error(12, [1, 10, 10], 10, 0.2) == np.inf


def test_more_rounds_can_be_a_remedy() -> None:
    plan = conche.plan(64, 400, 1, 64, 0.01, n_nodes=16)
    assert any("rounds a task" in remedy["what"] for remedy in plan.remedies)


def test_a_trillion_features() -> None:
    plan = conche.plan(10**12, 10**11, 16, 10**11, 0.01, n_nodes_max=256)
    small = conche.plan(10**8, 10**7, 16, 10**7, 0.01, n_nodes_max=256)
    common = {r["n_nodes"]: r["error"] for r in small.table}
    for row in plan.table:
        if row["n_nodes"] in common and np.isfinite(row["error"]):
            assert row["error"] == pytest.approx(common[row["n_nodes"]], rel=1e-4)


def test_candidates() -> None:
    assert candidate_nodes(12) == [1, 2, 3, 4, 6, 8, 12]
    assert candidate_nodes(7) == [1, 2, 4, 7]
    assert candidate_nodes(1024, 16) == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(noise_var=-0.1), "noise_var=-0.1"),
        (dict(n_shared=2000), "n_shared=2000"),
        (dict(n_samples=0), "n_samples=0"),
        (dict(n_samples=[5, 5]), "n_samples has 2 values for n_tasks=16"),
        (dict(n_tasks=0), "n_tasks=0"),
        (dict(n_features=1.5), "n_features=1.5"),
        (dict(n_nodes=5000), "n_nodes=5000"),
        (dict(energy=-1.0), "energy=-1.0"),
    ],
)
def test_bad_numbers_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        conche.plan(**(NUMBERS | change))


def test_plans_from_data_are_nearly_the_best() -> None:
    """Streams of the model: the true error at the advised number of nodes, against the best."""
    regret = []
    for p in (128, 256):
        for n in (p // 4, 2 * p):
            for n_shared in (0, p // 4, p // 2, 3 * p // 4, p):
                for seed in range(5):
                    tasks = conche.gaussian_tasks(16, n, p, n_shared, 0.01, seed=seed)
                    W = np.array([t.weights for t in tasks])
                    truth = {
                        K: theory.generalization_error(
                            Similarity.from_weights(W, [p // K] * K), n, 0.01
                        )[-1]
                        for K in candidate_nodes(p)
                    }
                    advised = conche.plan_from_tasks(tasks).n_nodes
                    regret.append(truth[advised] / min(truth.values()))
    assert np.mean(regret) <= 1.05


# --- files and the command line -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_streams_from_files(kind: str, tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(3, [5, 4, 6], 3)
    write_stream(tmp_path / "s", tasks, kind)
    read = read_stream(tmp_path / "s")
    assert [t.name for t in read] == ["00", "01", "02"]
    for a, b in zip(tasks, read, strict=True):
        np.testing.assert_allclose(a.X, b.X)
        np.testing.assert_allclose(a.y, b.y)
    assert len(read_stream(str(tmp_path / "s" / f"0[01].{kind}"))) == 2


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    pa.csv.write_csv(pa.table({"a": [1.0], "b": [2.0], "y": [3.0]}), tmp_path / "1.csv")
    pa.csv.write_csv(pa.table({"y": [3], "b": [20], "a": [10]}), tmp_path / "2.csv")
    assert read_stream(tmp_path)[1].X.tolist() == [[10.0, 20.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,y\n1,2\n", "2.csv: column 'b' of the first task is missing"),
        ("a,b,c,y\n1,2,3,4\n", "2.csv: column 'c' is not in the first task"),
        ("a,b,y\n1,x,3\n", "2.csv: column 'b' is not numeric"),
        ("a,b,z\n1,2,3\n", "2.csv: no column 'y' for the target"),
        ("a,b,y\n1,,3\n2,1,3\n", "2.csv: column 'b' has 1 missing value"),
        ("a,a,y\n1,2,3\n", "2.csv: two columns are called 'a'"),
        ("", "2.csv: cannot be read"),
        ("a,b,y\n", "2.csv: no rows"),
        ("a,b,y\n1,inf,3\n", "2.csv: column 'b' has missing or infinite values"),
    ],
)
def test_bad_files_are_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b,y\n1,2,3\n")
    (tmp_path / "2.csv").write_text(content)
    with pytest.raises(StreamError, match=message):
        read_stream(tmp_path)


def test_damaged_binary_files_are_named(tmp_path: Path) -> None:
    for name in ("1.parquet", "1.npz"):
        (tmp_path / name).write_bytes(b"not what it says")
        with pytest.raises(StreamError, match=f"{name}: cannot be read"):
            read_stream(str(tmp_path / name))
    for name, array in (("3", np.ones((0, 5))), ("4", np.full((3, 2), np.nan))):
        np.savez(tmp_path / f"{name}.npz", X=array, y=np.ones(len(array)))
        with pytest.raises(StreamError, match=f"{name}.npz: "):
            read_stream(str(tmp_path / f"{name}.npz"))
    np.savez(tmp_path / "5.npz", X=np.array([["a", "b"]]), y=np.ones(1))
    with pytest.raises(StreamError, match="5.npz: array 'X' is not numeric"):
        read_stream(str(tmp_path / "5.npz"))
    (tmp_path / "6.npz").write_bytes(b"")
    with pytest.raises(StreamError, match="6.npz: cannot be read"):
        read_stream(str(tmp_path / "6.npz"))
    np.savez(tmp_path / "2.npz", X=np.ones((3, 2)))
    with pytest.raises(StreamError, match="no array 'y'"):
        read_stream(str(tmp_path / "2.npz"))


def test_plan_on_the_command_line(tmp_path: Path) -> None:
    options = "--features 1024 --samples 2048 --tasks 16 --shared 768 --noise 0.01"
    numbers = options.split()
    done = run_here("plan", *numbers, "--plot", str(tmp_path / "plan.png"))
    assert done.returncode == 0, done.stderr
    assert "Use 8 nodes" in done.stdout
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    done = run_here("plan", *numbers, "--json", "--nodes-max", "64")
    answer = json.loads(done.stdout)
    assert answer["n_nodes"] == 8
    assert answer["error"] == pytest.approx(0.270, abs=5e-4)
    assert [c["n_nodes"] for c in answer["candidates"]] == [1, 2, 4, 8, 16, 32, 64]
    columns = {"n_nodes", "partition", "error", "spectral_radius", "warning"}
    assert set(answer["candidates"][0]) == columns


def test_plan_from_files_on_the_command_line(tmp_path: Path) -> None:
    write_stream(tmp_path / "s", conche.gaussian_tasks(8, 64, 32, n_shared=24), "parquet")
    done = run_here("plan", "--data", str(tmp_path / "s"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_nodes"] in (2, 4, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--features 10 --samples 5 --tasks 2 --shared 20 --noise 0.1", "n_shared=20"),
        ("--features 10 --samples 5 --tasks 2 --shared 2 --noise -1", "noise_var=-1"),
        ("--features 10 --samples 0 --tasks 2 --shared 2 --noise 1", "n_samples=0"),
        ("--features 10 --samples 5 --tasks 2 --noise 1", "--shared is missing"),
        ("--data nowhere", "nowhere: no such file or folder"),
        ("--data nowhere --noise 1", "--noise is estimated"),
        ("--features ten", "--features"),
        ("--bogus", "--bogus"),
        ("--features 10 --samples 5 --tasks 2 --shared 2 --noise nan", "noise_var=nan"),
        ("--features 10 --samples 5 --tasks 2 --shared 2 --noise inf", "noise_var=inf"),
        ("--features 10 --samples 5 --tasks 2 --shared 2 --noise 1 --energy nan", "energy=nan"),
        ("--features 10 --samples 5 --tasks 2 --shared 2 --noise 1 --nodes-max 0", "n_nodes_max=0"),
        (
            "--features 10 --samples 5 --tasks 2 --shared 2 --noise 1 --nodes 4 --nodes-max 2",
            "than",
        ),
        (
            "--features 10 --samples 5 --tasks 2 --shared 2 --noise 1 --plot x.xyz",
            "x.xyz: the name must end in .png",
        ),
        (
            "--features 10 --samples 5 --tasks 2 --shared 2 --noise 1 --plot no/x.png",
            "no: no such folder to write x.png in",
        ),
        ("--data nowhere --energy 1", "--energy is estimated"),
    ],
)
def test_bad_plans_are_one_line_and_status_two(arguments: str, message: str) -> None:
    done = run_here("plan", *arguments.split())
    assert done.returncode == 2
    assert in_options(message) in done.stderr
    assert done.stderr.startswith("conche: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
