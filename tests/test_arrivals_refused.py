"""What arrives and cannot be learnt: one clear line each, from the command line, and the checkpoint
and the model stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")

Change = Callable[[Any], Any]
BAD: list[tuple[str, Change, str, str]] = [
    # what is wrong, what it does to the third task, further options, what is said
    ("negative weight", lambda t: t.assign(w=-1.0), "--weight w", "sample_weight -1.0 of sample 0"),
    ("weight NaN", lambda t: t.assign(w=np.nan), "--weight w", "column 'w' has 20 missing values"),
    ("no weight at all", lambda t: t.assign(w=0.0), "--weight w", "is zero for every sample"),
    ("weight of text", lambda t: t.assign(w="much"), "--weight w", "'w' is text, not weights"),
    ("weight missing", lambda t: t.drop(columns="w"), "--weight w", "no column 'w' for the weight"),
    (
        "labels become numbers",
        lambda t: t.assign(y=range(20)),
        "",
        "label 0 is a number, but those",
    ),
    ("a label is missing", lambda t: t.assign(y=None), "", "column 'y' has 20 missing values"),
    ("no labels", lambda t: t.drop(columns="y"), "", "no column 'y' for the target"),
    (
        "a renamed column",
        lambda t: t.rename(columns={"a": "A"}),
        "",
        "'a' of the first task is miss",
    ),
    ("a column less", lambda t: t.drop(columns="b"), "", "column 'b' of the first task is missing"),
    ("a new column of text", lambda t: t.assign(z="?"), "", "column 'z' is not numeric"),
    ("a new column with gaps", lambda t: t.assign(z=np.nan), "", "column 'z' has 20 missing"),
    ("a new column, infinite", lambda t: t.assign(z=np.inf), "", "column 'z' has"),
    ("a column twice", lambda t: t.assign(z=1.0).rename(columns={"z": "a"}), "", "are called 'a'"),
    ("none of the columns", lambda t: t[["y"]].assign(q=1.0), "--missing mean", "none of the stre"),
    ("no rows", lambda t: t[:0], "", "no rows"),
]


def task(labels: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    y = rng.choice(list(labels), 20)
    X = rng.standard_normal((20, 2)) + (y == labels[0])[:, None]
    return pd.DataFrame(X, columns=["a", "b"]).assign(w=1.0, y=y)


OPTIONS = "--target y --nodes 2 --checkpoint c --resume --out m"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two tasks that have been learnt, by the options they were learnt with."""
    folders = {}
    for i, more in enumerate(("--drop w", "--weight w", "--drop w --missing mean")):
        folders[more] = folder = tmp_path_factory.mktemp(f"begun{i}")
        (folder / "s").mkdir()
        for t, labels in enumerate(("pq", "qr")):
            task(labels, t).to_csv(folder / "s" / f"{t}.csv", index=False)
        done = run("train", "s", *OPTIONS.split(), *more.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
    return folders


@pytest.mark.parametrize("bad", BAD, ids=[bad[0] for bad in BAD])
def test_bad_arrivals(begun: dict[str, Path], bad: tuple[str, Change, str, str]) -> None:
    _, change, more, message = bad
    more = more if "--weight" in more else f"--drop w {more}".strip()
    folder = begun[more]
    files = [folder / "c" / "model.conche", folder / "m"]
    kept = [file.read_bytes() for file in files]
    change(task("rs", 2)).to_csv(folder / "s" / "2.csv", index=False)
    done = run("train", "s", *OPTIONS.split(), *more.split(), cwd=folder)
    (folder / "s" / "2.csv").unlink()
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert message in done.stderr and ("2.csv" in done.stderr or "task 2" in done.stderr)
    assert [file.read_bytes() for file in files] == kept


def test_a_class_that_is_no_longer_listed(begun: dict[str, Path]) -> None:
    """And then the stream goes on as if nothing had been tried."""
    folder = begun["--drop w"]
    options = [*OPTIONS.split(), "--drop", "w"]
    done = run("train", "s", *options, "--classes", "p,q", cwd=folder)
    assert done.returncode == 2 and "has the classes ['p', 'q', 'r']; list them all" in done.stderr
    task("rs", 2).to_csv(folder / "s" / "2.csv", index=False)
    assert run("train", "s", *options, cwd=folder).returncode == 0
