"""A stream that goes on is the stream that was begun: tasks on disk are known again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import conche
from conche.common.arrays import Array
from conche.tasks.mark import Mark, block_mark, target_mark

from .helpers.commands import run_here

Change = Callable[[Array, Array], tuple[Array, Array]]


def write(folder: Path, name: str, X: Array, y: Array) -> None:
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{name}.npz", X=X, y=y)


def stream(folder: Path) -> None:
    for task, name in zip(conche.gaussian_tasks(3, 20, 6, noise_var=0.1), "abc", strict=True):
        write(folder, name, task.X, task.y)


def train(folder: Path, state: Path, *more: str) -> tuple[int, str]:
    command = ["train", folder, "--target", "y", "--nodes", 2, "--checkpoint", state]
    done = run_here(*command, "--out", state.parent / "m", *more)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def changed_row(X: Array, y: Array) -> tuple[Array, Array]:
    X[3, 4] += 1e-9
    return X, y


def changed_target(X: Array, y: Array) -> tuple[Array, Array]:
    y[7] = 0.5
    return X, y


def fewer(X: Array, y: Array) -> tuple[Array, Array]:
    return X[1:], y[1:]


def swapped(X: Array, y: Array) -> tuple[Array, Array]:
    return X[::-1], y


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed_row, "other features now"),
        (changed_target, "another target now"),
        (fewer, "19 rows, not 20 now"),
        (swapped, "other features now"),
    ],
)
def test_other_files_of_the_same_names_are_refused(
    change: Change, told: str, tmp_path: Path
) -> None:
    folder, state = tmp_path / "s", tmp_path / "state"
    stream(folder)
    last = (folder / "c.npz").read_bytes()
    (folder / "c.npz").unlink()
    assert train(folder, state)[0] == 0
    with np.load(folder / "b.npz") as old:
        X, y = change(old["X"].copy(), old["y"].copy())
    write(folder, "b", X, y)
    (folder / "c.npz").write_bytes(last)
    before = (state / "model.conche").read_bytes()
    status, output = train(folder, state, "--resume")
    assert status == 2 and f"task 'b' is not the one that was learnt: {told}" in output, output
    assert (state / "model.conche").read_bytes() == before


def test_the_same_tasks_written_anew_are_accepted(tmp_path: Path) -> None:
    folder, state = tmp_path / "s", tmp_path / "state"
    stream(folder)
    (folder / "c.npz").rename(tmp_path / "c.npz")
    assert train(folder, state)[0] == 0
    with np.load(folder / "b.npz") as old:
        np.savez_compressed(folder / "b.npz", X=np.asfortranarray(old["X"]), y=old["y"])
    (tmp_path / "c.npz").rename(folder / "c.npz")
    status, output = train(folder, state, "--resume")
    assert status == 0 and "2 of 3 were learnt" in output, output


def test_a_mark_says_what_has_changed() -> None:
    mark = Mark(5, target_mark(np.arange(5.0)), block_mark(0, np.eye(5)))
    assert mark.changed(mark) is None
    assert target_mark(np.array(["a", "b"])) != target_mark(np.array(["ab", ""]))
    assert block_mark(0, np.eye(5)) != block_mark(1, np.eye(5))
    assert block_mark(0, np.eye(6)[:, :3]) == block_mark(0, np.asfortranarray(np.eye(6)[:, :3]))
