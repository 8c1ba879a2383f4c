"""Streams whose nodes have files of their own: what one table would give, and nothing is lost."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import conche
from conche.model_file import load_run
from conche.nodes.home import Home
from conche.tasks.keys import Keys
from conche.tasks.tables import open_table

from .helpers.commands import run_here as run
from .helpers.parties import (
    HEAD,
    NODES,
    TASKS,
    describe,
    edit,
    in_column,
    kept_at_home,
    put,
    small,
    without_column,
    write_beijing,
)

TRAIN = ("train", "stream.toml", "--out", "m.conche")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small(tmp_path)
    return tmp_path


def at_home(root: Path) -> None:
    describe(root, NODES, 'keep_weights = "nodes"\nhome = "homes"')


def _moved(line: str) -> str:
    """The target, the last column, a little larger."""
    *rest, y = line.split(",")
    return ",".join([*rest, y if y.strip('"').isalpha() else str(float(y) + 0.25)])


def table(root: Path, task: str) -> Any:
    """What everybody has of a task, joined by its key in the target's order: the slow way."""
    pd = pytest.importorskip("pandas")
    whole = pd.read_csv(root / "target" / f"{task}.csv")
    for node in NODES:
        own = pd.read_csv(root / node / f"{task}.csv")
        own = own.rename(columns={c: f"{node}/{c}" for c in own if c not in ("day", "hour")})
        whole = whole.merge(own, "left", on=["day", "hour"])
    return whole.drop(columns=["day", "hour"])


def learnt(root: Path, **options: Any) -> conche.ConcheRegressor:
    """The model of the joined tables."""
    model = conche.ConcheRegressor(partition=[["north/*"], ["south/*"]], **options)
    for task in TASKS:
        frame = table(root, task)
        model.partial_fit(frame.drop(columns="y"), frame["y"])
    return model


def lose(root: Path, node: str, task: str, rows: slice) -> None:
    edit(root / node / f"{task}.csv", lambda lines: lines.__delitem__(rows))


@pytest.mark.parametrize("months", [48])
def test_beijing_in_twelve_folders_is_beijing_in_one_table(tmp_path: Path, months: int) -> None:
    stations = write_beijing(tmp_path, months)
    stream = conche.NodeStream(describe(tmp_path, stations), missing="keep")
    options: dict[str, Any] = {"partition": stream.partition, "missing": "mean"}
    here, there = (conche.ConcheRegressor(**options) for _ in range(2))
    for task in conche.FileStream(tmp_path / "table", missing="keep"):
        here.partial_fit(task.X, task.y)
    for task in stream:
        there.partial_fit(task.X, task.y)
    assert there.n_features_in_ == 132 and there.n_tasks_seen_ == months
    far = np.max(np.abs(here.coef_ - there.coef_)) / np.max(np.abs(here.coef_))
    assert far <= 1e-10


def test_train_evaluate_and_predict_from_one_description(root: Path) -> None:
    done = run(*TRAIN, cwd=root)
    assert done.returncode == 0 and "3 tasks, 2 nodes of 2 to 3 columns" in done.stdout, done.stderr
    same = learnt(root)
    assert conche.load(root / "m.conche").coef_ == pytest.approx(same.coef_, rel=1e-10)
    rows = []
    model = conche.ConcheRegressor(partition=same.partition)
    tables = [table(root, task) for task in TASKS]
    for frame in tables:
        model.partial_fit(frame.drop(columns="y"), frame["y"])
        rows.append([np.mean((model.predict(f.drop(columns="y")) - f["y"]) ** 2) for f in tables])
    done = run("evaluate", "m.conche", "stream.toml", "--json", cwd=root)
    assert np.array(json.loads(done.stdout)["matrix"]) == pytest.approx(np.array(rows))
    for file in (root / "target").iterdir():  # what is to be predicted has no target yet
        edit(file, without_column("y"))
    done = run(
        "predict", "m.conche", "stream.toml", "--tasks", "mar,may", "--out", "p.csv", cwd=root
    )
    assert done.returncode == 0, done.stderr
    found = pa.csv.read_csv(root / "p.csv").to_pydict()
    assert list(found) == ["file", "day", "hour", "prediction"]
    guess = np.concatenate([same.predict(f.drop(columns="y")) for f in tables[1:]])
    assert np.array(found["prediction"]) == pytest.approx(guess)
    keys = pa.csv.read_csv(root / "target" / "may.csv").to_pydict()
    assert (found["day"][30:], found["hour"][30:]) == (keys["day"], keys["hour"])


def test_rows_that_a_node_has_not_are_filled_or_left_out(root: Path) -> None:
    lose(root, "south", "mar", slice(3, 9))
    lose(root, "north", "mar", slice(1, 3))
    done = run(*TRAIN, "--missing", "mean", cwd=root)
    assert done.returncode == 0, done.stderr
    filled = learnt(root, missing="mean")
    assert conche.load(root / "m.conche").coef_ == pytest.approx(filled.coef_, rel=1e-10)
    done = run("predict", "m.conche", "stream.toml", "--tasks", "mar", cwd=root)
    assert len(done.stdout.splitlines()) == 31
    done = run(*TRAIN[:3], "c.conche", "--rows", "common", cwd=root)
    assert done.returncode == 0, done.stderr
    common = conche.ConcheRegressor(partition=filled.partition)
    for task in TASKS:
        frame = table(root, task).dropna()
        common.partial_fit(frame.drop(columns="y"), frame["y"])
    model, learning = load_run(root / "c.conche")
    assert model.coef_ == pytest.approx(common.coef_, rel=1e-10)
    assert learning is not None and [m.rows for m in learning.marks] == [
        30,
        len(table(root, "mar").dropna()),
        30,
    ]
    done = run("predict", "c.conche", "stream.toml", "--rows", "common", "--tasks", "mar", cwd=root)
    keys = [line.split(",")[:2] for line in done.stdout.splitlines()[1:]]
    whole = table(root, "mar")
    left = int(whole.isna().any(axis=1).sum())
    for option, said in (
        (("--missing", "mean"), "were filled: 2 of 90 on 'north', 6 of 90 on 'south'\n"),
        (("--rows", "common"), f"{left} of 90 rows were left out, which some node does not have\n"),
    ):
        assert said in run(*TRAIN[:3], "d.conche", *option, cwd=root).stdout
        assert run(*TRAIN[:3], "d.conche", *option, "--quiet", cwd=root).stdout == ""
    target = pa.csv.read_csv(root / "target" / "mar.csv").to_pydict()
    stay = np.flatnonzero(~whole.isna().any(axis=1))
    assert keys == [[target["day"][i], str(target["hour"][i])] for i in stay]


def test_nothing_in_common(root: Path) -> None:
    lose(root, "south", "jan", slice(1, 16))
    there = (root / "south" / "jan.csv").read_text().splitlines()[1:]
    have = {tuple(line.replace('"', "").split(",")[:2]) for line in there}

    def others(rows: list[list[str]]) -> None:
        rows[1:] = [row for row in rows[1:] if tuple(row[:2]) not in have]

    edit(root / "north" / "jan.csv", others)
    done = run(*TRAIN, "--rows", "common", cwd=root)
    assert done.returncode == 2 and "task jan: no row is on all nodes" in done.stderr


@pytest.mark.parametrize("option", [(), ("--missing", "mean"), ("--rows", "common")])
def test_a_node_with_none_of_the_rows_is_refused(root: Path, option: tuple[str, ...]) -> None:
    """Whatever would be done with a row that is missing: also where predictions are wanted."""
    edit(root / "south" / "mar.csv", in_column("day", "x*"))
    said = r"node 'south': \S*south/mar.csv: has none of the 30 rows, such as 'd\d, \d+'"
    done = run(*TRAIN, *option, cwd=root)
    assert done.returncode == 2 and re.search(rf"{said}; 1 task learnt", done.stderr), done.stderr
    done = run(*TRAIN, *option, "--plain-keys", cwd=root)
    assert re.search(rf"{said}; its own are such as 'xd\d, \d+'", done.stderr), done.stderr
    done = run("predict", "m.conche.partial", "stream.toml", "--tasks", "mar", cwd=root)
    assert done.returncode == 2 and re.search(said, done.stderr), done.stderr


def test_a_file_that_has_changed_is_noticed_and_nothing_is_lost(root: Path) -> None:
    train = (*TRAIN, "--checkpoint", "state")
    assert run(*train, cwd=root).returncode == 0
    before = (root / "state" / "model.conche").read_bytes()
    whole = (root / "m.conche").read_bytes()
    edit(root / "south" / "mar.csv", lambda rows: rows[5].__setitem__(2, "0.25"))
    done = run(*train, "--resume", cwd=root)
    said = (
        r"'mar' is not the one that was learnt: other features now \(node 'south': \S*mar.csv has"
    )
    assert done.returncode == 2 and re.search(said, done.stderr), done.stderr
    assert (root / "state" / "model.conche").read_bytes() == before
    assert (root / "m.conche").read_bytes() == whole


@pytest.mark.parametrize("home", [False, True])
def test_a_folder_that_goes_between_tasks_costs_no_task(root: Path, home: bool) -> None:
    if home:
        at_home(root)
    assert run(*TRAIN, cwd=root).returncode == 0
    before = run("predict", "m.conche", "stream.toml", cwd=root).stdout
    stream = conche.NodeStream(root / "stream.toml")
    model = conche.ConcheRegressor(partition=stream.partition, network=stream.network)
    tasks = iter(stream)
    first = next(tasks)
    model.partial_fit(first.X, first.y)
    second = next(tasks)  # its rows are matched, and then
    shutil.move(root / "south", root / "gone")
    with pytest.raises(conche.StreamError, match="node 'south': .*south: no such file or folder"):
        model.partial_fit(second.X, second.y)
    with pytest.raises(conche.StreamError, match="node 'south': .*south: no such file or folder"):
        next(iter(stream))
    assert model.n_tasks_seen_ == 1
    done = run(*TRAIN, "--checkpoint", "state", cwd=root)
    assert done.returncode == 2 and "node 'south'" in done.stderr
    shutil.move(root / "gone", root / "south")
    for task in list(stream)[1:]:
        model.partial_fit(task.X, task.y)
    guess = [model.predict(task.X) for task in stream]
    found = [float(line.split(",")[-1]) for line in before.splitlines()[1:]]
    assert np.concatenate(guess) == pytest.approx(np.array(found), rel=1e-10)


@pytest.mark.parametrize("home", [False, True])
def test_a_run_that_ends_early_goes_on(root: Path, home: bool) -> None:
    if home:
        at_home(root)
    assert run(*TRAIN, cwd=root).returncode == 0
    before = run("predict", "m.conche", "stream.toml", cwd=root).stdout
    bad = (root / "south" / "may.csv").read_text()
    lose(root, "south", "may", slice(3, 4))
    done = run(*TRAIN[:3], "again.conche", cwd=root)
    assert done.returncode == 2 and "2 tasks learnt, up to 'mar': saved to" in done.stderr
    (root / "south" / "may.csv").write_text(bad)
    done = run(*TRAIN[:3], "again.conche", "--resume", cwd=root)
    assert done.returncode == 0 and "2 of 3 were learnt" in done.stdout, done.stderr
    assert run("predict", "again.conche", "stream.toml", cwd=root).stdout == before
    if not home:
        assert (root / "again.conche").read_bytes() == (root / "m.conche").read_bytes()


def test_a_resumed_run_lets_go_of_what_its_checkpoint_replaces(root: Path) -> None:
    at_home(root)
    train = (*TRAIN, "--checkpoint", "state")
    whole = (root / "south" / "may.csv").read_text()
    lose(root, "south", "may", slice(3, 4))
    assert run(*train, cwd=root).returncode == 2
    (root / "south" / "may.csv").write_text(whole)
    assert run(*train, "--resume", cwd=root).returncode == 0
    states = sorted(file.name.split("-")[0] for file in (root / "homes").glob("*.conche"))
    assert states == ["north", "south"]
    assert run("predict", "m.conche", "stream.toml", cwd=root).returncode == 0


def kept_at(root: Path) -> list[str]:
    """Whose weights are in the nodes' homes."""
    return sorted(file.name.split("-")[0] for file in (root / "homes").glob("*.conche"))


@pytest.mark.parametrize("fails", [False, True])
def test_a_resumed_run_keeps_what_a_finished_model_has(root: Path, fails: bool) -> None:
    """A model that was written is one's own, whatever becomes of the checkpoint it came from."""
    at_home(root)
    folders = ("target", *NODES)
    for folder in folders:
        (root / folder / "may.csv").rename(root / f"{folder}.csv")
    train = ("train", "stream.toml", "--checkpoint", "state", "--out")
    assert run(*train, "march.conche", cwd=root).returncode == 0
    guess = run("predict", "march.conche", "stream.toml", cwd=root).stdout
    for folder in folders:
        (root / f"{folder}.csv").rename(root / folder / "may.csv")
        shutil.copy(root / folder / "may.csv", root / folder / "oct.csv")
    later = root / "target" / "oct.csv"  # the same rows with other targets, which is another task
    later.write_text("\n".join(map(_moved, later.read_text().splitlines())))
    if fails:
        lose(root, "south", "oct", slice(3, 4))
    out = "march.conche" if fails else "april.conche"
    assert run(*train, out, "--resume", cwd=root).returncode == (2 if fails else 0)
    done = run("predict", "march.conche", "stream.toml", "--tasks", "jan,mar", cwd=root)
    assert done.stdout == guess, done.stderr
    assert kept_at(root) == ["north", "north", "south", "south"]
    if not fails:
        assert run("predict", "april.conche", "stream.toml", cwd=root).returncode == 0


def test_weights_of_a_model_that_was_left_go_with_it(root: Path) -> None:
    """With the partial model that a later run replaces, and with the one that a run has ended."""
    at_home(root)
    whole = (root / "south" / "may.csv").read_text()
    kept = (root / "south" / "mar.csv").read_text()
    lose(root, "south", "may", slice(3, 4))
    lose(root, "south", "mar", slice(3, 4))
    assert "1 task learnt" in run(*TRAIN, cwd=root).stderr
    (root / "south" / "mar.csv").write_text(kept)
    assert "2 tasks learnt" in run(*TRAIN, "--resume", cwd=root).stderr
    assert kept_at(root) == ["north", "south"]
    (root / "south" / "may.csv").write_text(whole)
    assert run(*TRAIN, "--resume", cwd=root).returncode == 0
    assert kept_at(root) == ["north", "south"]
    assert run("predict", "m.conche", "stream.toml", cwd=root).returncode == 0


def test_weights_that_stay_at_home(root: Path) -> None:
    """The coordinator's file has none of them, and each node's has its own alone. With a ridge that
    is given in units of the first rows, where they are makes no difference."""
    given = ("--ridge", "1.5", "--scaling", "first")
    assert run(*TRAIN, *given, cwd=root).returncode == 0
    plain = conche.load(root / "m.conche")
    usual = run("predict", "m.conche", "stream.toml", cwd=root).stdout
    errors = json.loads(run("evaluate", "m.conche", "stream.toml", "--json", cwd=root).stdout)
    at_home(root)
    done = run(*TRAIN[:3], "h.conche", "--checkpoint", "state", *given, cwd=root)
    assert done.returncode == 0, done.stderr
    states = sorted(file.name.split("-")[0] for file in (root / "homes").glob("*.conche"))
    assert states == ["north", "south"]  # those of earlier tasks have gone
    there = run("predict", "h.conche", "stream.toml", cwd=root).stdout
    both = [[float(line.split(",")[-1]) for line in out.splitlines()[1:]] for out in (usual, there)]
    assert both[0] == pytest.approx(both[1], rel=1e-10)
    found = json.loads(run("evaluate", "h.conche", "stream.toml", "--json", cwd=root).stdout)
    assert found["errors"] == pytest.approx(errors["errors"], rel=1e-10)
    files = sorted(map(str, (root / "homes").glob("*.conche")))  # what not to delete
    shown = run("info", "h.conche", cwd=root).stdout
    assert "ConcheRegressor" in shown and all(file in shown for file in files)
    assert json.loads(run("info", "h.conche", "--json", cwd=root).stdout)["home_files"] == files
    own = np.array([*kept_at_home(root).values()])
    secrets = np.concatenate([plain.coef_, [plain.intercept_], own])
    assert len(secrets) > 15
    held = np.frombuffer(_numbers(root / "h.conche"), float)
    held = held[np.isfinite(held)]  # a ridge that was given is none that was found
    assert all(np.min(np.abs(held - secret)) > 1e-9 * abs(secret) for secret in secrets)
    model = conche.load(root / "h.conche")
    for cannot in ("coef_", "intercept_"):
        with pytest.raises(conche.ParameterError, match="keep_weights = 'nodes'"):
            getattr(model, cannot)
    with pytest.raises(conche.ParameterError, match="keep_weights = 'nodes'"):
        conche.to_sklearn(model)
    with pytest.raises(conche.ParameterError, match="keep_weights = 'nodes'"):
        model.predict(np.zeros((1, 5)))
    with pytest.raises(conche.ParameterError, match="takes its weights along"):
        model.drop_node(1)
    shutil.move(root / "homes", root / "elsewhere")
    done = run("predict", "h.conche", "stream.toml", cwd=root)
    assert done.returncode == 2 and re.search(r"node 'north': \S*north-.*not there", done.stderr)
    shutil.move(root / "elsewhere", root / "homes")
    file = next((root / "homes").glob("south-*"))
    file.write_bytes(file.read_bytes()[:-3] + b"xyz")
    done = run("predict", "h.conche", "stream.toml", cwd=root)
    assert done.returncode == 2 and "node 'south'" in done.stderr and file.name in done.stderr


def _numbers(file: Path) -> bytes:
    """Every number of a model's file, wherever it stands."""
    from safetensors.numpy import load_file

    arrays = [a.astype(float).ravel() for a in load_file(file).values() if a.dtype.kind in "fiu"]
    return np.concatenate(arrays).tobytes()


def test_what_weights_at_home_cannot(root: Path) -> None:
    at_home(root)
    done = run(*TRAIN, "--solver", "elastic-net", "--alpha", 0.1, cwd=root)
    assert done.returncode == 2 and "an elastic net finds the weights itself" in done.stderr
    for option in ({"solver": "damped"}, {"solver": conche.Memory(rank=3)}, {"solver": "exact"}):
        stream = conche.NodeStream(root / "stream.toml")
        common: Any = {"partition": stream.partition, "scaling": "first", **option}
        there = conche.CoCoARegressor(network=stream.network, **common)
        here = conche.CoCoARegressor(**common)
        for task in stream:
            there.partial_fit(task.X, task.y)
            frame = table(root, str(task.name))
            here.partial_fit(frame.drop(columns="y"), frame["y"])
        guess = here.predict(table(root, "may").drop(columns="y"))
        assert there.predict(stream.task(2).X) == pytest.approx(guess, rel=1e-9)


def test_labels_weights_and_columns_that_come_later(root: Path) -> None:
    """Texts, categories on one node, a new value of them in a later task, samples' weights."""
    rng = np.random.default_rng(2)
    for i, task in enumerate(TASKS):

        def more(rows: list[list[str]], i: int = i) -> None:
            rows[0].append("wind")
            for j, row in enumerate(rows[1:]):
                row.append("NEW"[: i + 1][j % (i + 1)])

        edit(root / "north" / f"{task}.csv", more)

        def label(rows: list[list[str]]) -> None:
            rows[0] += ["label", "trust"]
            for row in rows[1:]:
                row += ["warm" if float(row[2]) > 0 else "cold", str(rng.integers(1, 4))]

        edit(root / "target" / f"{task}.csv", label)
    head = HEAD.format(more="").replace('"y"', '"label"\nweight = "trust"')
    head += '[nodes.north]\nfiles = "north"\ncategories = "wind"\n'
    (root / "stream.toml").write_text(head + '[nodes.south]\nfiles = "south"\ndrop = ["e"]\n')
    done = run(*TRAIN, cwd=root)
    assert done.returncode == 0 and "new column: north/wind=E" in done.stdout, done.stderr
    model = conche.load(root / "m.conche")
    names = ["a", "b", "wind=N"]
    assert model.feature_names_in_.tolist()[:5] == [f"north/{n}" for n in names] + [
        "south/c",
        "south/d",
    ]
    assert sorted(model.classes_.tolist()) == ["cold", "warm"] and model.n_features_in_ == 7
    same = conche.ConcheClassifier(partition=[["north/*"], ["south/*"]])
    pd = pytest.importorskip("pandas")
    for i, task in enumerate(TASKS):
        frame = table(root, task)
        values = {f"north/wind={w}": (frame["north/wind"] == w) * 1.0 for w in "NEW"[: i + 1]}
        X = pd.concat(
            [frame[["north/a", "north/b", "south/c", "south/d"]], pd.DataFrame(values)], axis=1
        )
        same.partial_fit(X, frame["label"], sample_weight=frame["trust"])
    ours = dict(zip(model.feature_names_in_, model.coef_[0], strict=True))
    theirs = dict(zip(same.feature_names_in_, same.coef_[0], strict=True))
    assert ours == pytest.approx(theirs, rel=1e-9)
    done = run("predict", "m.conche", "stream.toml", "--tasks", "may", cwd=root)
    assert done.stdout.splitlines()[0] == "day,hour,prediction"


def test_tasks_by_a_column_and_rows_in_the_same_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((90, 4)), rng.standard_normal(90)
    month = np.repeat(["a", "b", "c"], 30)
    put(tmp_path / "t.csv", {"month": month, "y": y})
    put(tmp_path / "one" / "all.parquet", {"month": month, "p": X[:, 0]})
    put(tmp_path / "two.csv", {"m": month, "q": X[:, 1], "r": X[:, 2], "s": X[:, 3]})
    (tmp_path / "stream.toml").write_text("""
task_column = "month"
target = {files = "t.csv", column = "y"}
[nodes]
one = {files = "one"}
two = {files = "two.csv", task_column = "m"}
""")
    done = run(*TRAIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    same = conche.ConcheRegressor(partition=[1, 3])
    for rows in np.split(np.arange(90), 3):
        same.partial_fit(X[rows], y[rows])
    assert conche.load(tmp_path / "m.conche").coef_ == pytest.approx(same.coef_, rel=1e-10)
    done = run("predict", "m.conche", "stream.toml", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "file,prediction"
    edit(tmp_path / "two.csv", lambda rows: rows.pop())
    done = run(*TRAIN, cwd=tmp_path)
    assert done.returncode == 2 and re.search(
        r"node 'two': \S*two.csv: 29 rows, and the target has 30; .* need a key; 2 tasks",
        done.stderr,
    )
    assert "needs a key" in run(*TRAIN, "--rows", "common", cwd=tmp_path).stderr


def test_options_that_the_description_has(root: Path) -> None:
    for given, said in (
        (("--target", "y"), "--target: stream.toml says that itself"),
        (("--nodes", 2), "--nodes: stream.toml says that itself"),
        (("--separator", ";"), "--separator: stream.toml says that itself"),
    ):
        assert said in run(*TRAIN, *given, cwd=root).stderr
    text = (root / "stream.toml").read_text()
    (root / "placed.toml").write_text(text.replace('"south"', '"south"\nworker = "b"'))
    placed = run("train", "placed.toml", "--network", "ray", "--workers", 1, "--out", "m", cwd=root)
    assert "--workers 1: the stream itself says where its nodes live" in placed.stderr
    done = run("train", "north", "--target", "a", "--rows", "common", "--out", "m", cwd=root)
    assert "--rows common is for a .toml file" in done.stderr
    assert "Missing option '--target'" in run("train", "north", "--out", "m", cwd=root).stderr


def test_keys_travel_sealed(root: Path) -> None:
    """No key is in what nodes are sent, unless it is asked for."""
    file = open_table(root / "target" / "jan.csv")
    one, two = (Keys.of(file, ["day", "hour"], salt) for salt in (b"1" * 16, b"2" * 16))
    assert one.values.shape == (30, 16) and not np.any(np.all(one.values == two.values, axis=1))
    for plain in (False, True):
        task = conche.NodeStream(root / "stream.toml", plain_keys=plain).task(0)
        told = task.X.select(slice(0, 2)).sendable()  # to the first node
        assert [part.files.name for part in told.parts] == ["north"]
        assert (told.keys.salt is None) == plain
        assert ("d0\x1f14" in told.keys.values.tolist()) == plain


def test_numbers_are_the_same_key_however_they_are_stored(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", {"k": [3, 1, 2]})
    put(tmp_path / "b.parquet", {"k": [1.0, 2.0, 3.0]})
    salt = b"0" * 16
    target, own = (Keys.of(open_table(tmp_path / f), ["k"], salt) for f in ("a.csv", "b.parquet"))
    assert target.order(own).tolist() == [2, 0, 1]


ORDERS: dict[str, tuple[Any, Any, list[int]]] = {  # the target's keys, a node's, and where they are
    "long numbers": (
        [f"1234567890123456789{i}" for i in range(10)],
        [f"1234567890123456789{i}" for i in (3, 1, 0)],
        [2, 1, -1, 0, -1, -1, -1, -1, -1, -1],
    ),
    "zeros before and after": (["7", "8.50", "-0"], ["0", "008.5", "007.0"], [2, 1, 0]),
    "times and dates": (
        ["2013-03-01T00", "2013-03-01 00:30", "2013-03-02"],
        ["2013-03-01 00:30:00.000", "2013-03-02 00:00:00", "2013-03-01"],
        [2, 0, 1],
    ),
    "a stray text among times": (
        ["2013-03-01 00:00:00", "2013-03-01 01:00:00"],
        ["2013-03-01T01", "other0", "2013-03-01T00"],
        [2, 0],
    ),
    "zones": (
        ["2013-03-01T01:00+01:00", "2013-03-01 01:00:00Z"],
        ["2013-03-01T00:00Z", "2013-03-01 02:00:00+0100"],
        [0, 1],
    ),
    "a zone and none": (["2013-03-01T00:00Z"], ["2013-03-01T00:00"], [-1]),
    "a number and a text": (["100000"], ["1e5"], [-1]),
}


@pytest.mark.parametrize("what", ORDERS)
def test_every_key_is_read_by_itself_and_exactly(tmp_path: Path, what: str) -> None:
    theirs, mine, order = ORDERS[what]
    for name, values in (("target", theirs), ("own", mine)):
        (tmp_path / f"{name}.csv").write_text("k\n" + "\n".join(values) + "\n")
    put(tmp_path / "own.parquet", {"k": mine})  # texts
    target = Keys.of(open_table(tmp_path / "target.csv"), ["k"], None)
    for file in ("own.csv", "own.parquet"):
        own = Keys.of(open_table(tmp_path / file), ["k"], None)
        assert target.order(own).tolist() == order


def test_stored_times_and_numbers_are_the_keys_that_texts_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k\n2013-03-01\n2013-03-01 12:00:00.5\n")
    target = Keys.of(open_table(tmp_path / "t.csv"), ["k"], b"0" * 16)
    when = np.array(["2013-03-01T12:00:00.5", "2013-03-01"], "M8[ms]")
    for unit, order in ((pa.timestamp("ns"), [1, 0]), (pa.timestamp("ms", "UTC"), [-1, -1])):
        put(tmp_path / "n.parquet", {"k": pa.array(when).cast(unit)})
        own = Keys.of(open_table(tmp_path / "n.parquet"), ["k"], b"0" * 16)
        assert target.order(own).tolist() == order
    for big, exact in ((2.0**53 - 1, True), (2.0**53, False)):
        put(tmp_path / "f.parquet", {"k": [1.0, big]})
        table = open_table(tmp_path / "f.parquet")
        if exact:
            assert table.spelled("k") == ["1", str(int(big))]
        else:
            with pytest.raises(conche.StreamError, match=r"f.parquet: the key 'k' has more digits"):
                Keys.of(table, ["k"], None)


def test_long_ids_are_written_beside_predictions_to_the_digit(root: Path) -> None:
    for file in [f for folder in ("target", *NODES) for f in (root / folder).iterdir()]:
        edit(file, in_column("hour", "1234567890123456789*"))
    assert run(*TRAIN, cwd=root).returncode == 0
    rows = run("predict", "m.conche", "stream.toml", "--tasks", "mar", cwd=root).stdout
    keys = [line.split(",")[1] for line in rows.splitlines()[1:]]
    there = (root / "target" / "mar.csv").read_text().splitlines()[1:]
    assert keys == [line.split(",")[1] for line in there] and len(set(keys)) == 24


def test_the_whole_matrix_is_with_nobody(root: Path) -> None:
    task = conche.NodeStream(root / "stream.toml").task(0)
    with pytest.raises(conche.StreamError, match="nobody has them all"):
        task.X.read()


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_secret_of_the_node_alone(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "h"), "north")
    assert home.secret() == home.secret() and len(home.secret()) == 32
    file = tmp_path / "h" / "north.secret"
    assert mode(file) == 0o600 and mode(file.parent) == 0o700
    for short in ("", "x" * 31, "\n" * 40):
        file.write_text(short)
        with pytest.raises(
            conche.StreamError, match=r"node 'north': .*t: 32 characters are the least"
        ):
            home.secret()


def test_weights_at_home_are_for_their_owner_alone(root: Path) -> None:
    at_home(root)
    assert run(*TRAIN, cwd=root).returncode == 0
    assert {mode(file) for file in (root / "homes").iterdir()} == {0o600}
