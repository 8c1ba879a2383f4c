"""What a newcomer stumbles over in the first hour."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import conche

from .helpers.commands import CONCHE
from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")


def task(seed: int, n: int = 30) -> pd.DataFrame:  # type: ignore[name-defined]  # no types there
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X @ [1.0, 2.0, 3.0] + 0.1)


def written(folder: Path, names: list[str], n: int = 30) -> Path:
    folder.mkdir()
    for seed, name in enumerate(names):
        task(seed, n).to_csv(folder / name, index=False)
    return folder


def test_numbers_in_names_are_compared_as_numbers(tmp_path: Path) -> None:
    names = [f"{i}.csv" for i in (1, 2, 10, 11, 3)] + ["b2.csv", "b10.csv", "a.csv"]
    stream = conche.FileStream(written(tmp_path / "s", names))
    assert stream.names == ["1", "2", "3", "10", "11", "a", "b2", "b10"]
    done = run("train", "s", "--target", "y", "--nodes", "2", "--out", "m", cwd=tmp_path)
    assert done.returncode == 0 and "8 tasks, 1 to b10" in done.stdout


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_index_that_pandas_saved_is_no_feature(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for t in range(2):
        frame = task(t).sample(frac=0.8, random_state=t)  # which has an index of its own
        path = tmp_path / "s" / f"{t}.{suffix}"
        frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path)
    stream = conche.FileStream(tmp_path / "s")
    assert stream.columns == ["a", "b", "c"]
    options = ["--target", "y", "--nodes", "1", "--out", "m"]
    done = run("train", "s", *options, cwd=tmp_path)
    assert done.returncode == 0 and "is an index that pandas has saved" in done.stdout
    if suffix == "parquet":
        done = run("train", "s", *options, "--features", "a,__index*", cwd=tmp_path)
        assert done.returncode == 0 and "index that" not in done.stdout
        names = conche.load(tmp_path / "m").feature_names_in_
        assert names.tolist() == ["a", "__index_level_0__"]


def test_whole_numbers_with_few_values_are_asked_about(tmp_path: Path) -> None:
    written(tmp_path / "s", ["0.csv"], n=60)
    frame = pd.read_csv(tmp_path / "s" / "0.csv").assign(k=np.arange(60) % 3)
    frame.to_csv(tmp_path / "s" / "0.csv", index=False)
    options = ["--nodes", "1", "--out", "m"]
    done = run("train", "s", "--target", "k", *options, cwd=tmp_path)
    assert "has 3 values, all whole numbers: --classify would" in done.stdout
    for asked in (["--target", "y"], ["--target", "k", "--classify"]):
        assert "--classify would" not in run("train", "s", *asked, *options, cwd=tmp_path).stdout


def test_bad_files_are_found_before_the_first_task(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", ["0.csv", "1.csv", "2.csv"])
    task(2).drop(columns="b").to_csv(folder / "2.csv", index=False)
    done = run("train", "s", "--target", "y", "--nodes", "1", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "2.csv: column 'b' of the first task" in done.stderr
    assert "above offline" not in done.stdout and not list(tmp_path.glob("m*"))


def test_a_bad_last_file_loses_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", ["0.csv", "1.csv", "2.csv"])
    good = (folder / "2.csv").read_text()
    (folder / "2.csv").write_text(re.sub(r"\n[^,]*,", "\ninf,", good, count=1))
    options = ["--target", "y", "--nodes", "1", "--out", "m"]
    done = run("train", "s", *options, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (
        "2 tasks learnt, up to '1': saved to m.partial, and once that is mended, the same"
        in done.stderr
    )
    assert conche.load(tmp_path / "m.partial").n_tasks_seen_ == 2
    (folder / "2.csv").write_text(good)
    done = run("train", "s", *options, "--resume", cwd=tmp_path)
    assert done.returncode == 0 and not (tmp_path / "m.partial").exists(), done.stderr
    run("train", "s", "--target", "y", "--nodes", "1", "--out", "whole", cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_full_disk_loses_neither_model_nor_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "s", ["0.csv", "1.csv"])
    options = ["--target", "y", "--nodes", "1", "--out", "m"]
    assert run("train", "s", *options, cwd=tmp_path).returncode == 0

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("conche.cli.reports.matrix.write_atomically", full)
    monkeypatch.setattr("conche.cli.reports.plans.write_atomically", full)
    done = run("evaluate", "m", "s", "--target", "y", "--plot", "p.png", cwd=tmp_path)
    assert done.returncode == 2 and "average" in done.stdout and "No space left" in done.stderr
    asked = "--features 64 --samples 32 --tasks 4 --shared 32 --noise 0.1 --plot p.png"
    done = run("plan", *asked.split(), cwd=tmp_path)
    assert done.returncode == 2 and "advised" in done.stdout and not list(tmp_path.glob("p.*"))
    monkeypatch.setattr("conche.model_file.write_atomically", full)
    done = run("train", "s", *options, cwd=tmp_path)
    assert done.returncode == 2 and "could not be saved to m.partial" in done.stderr


@pytest.mark.parametrize(
    ("sign", "status", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupt_says_what_was_learnt(
    tmp_path: Path, sign: signal.Signals, status: int, word: str
) -> None:
    # more rows than a pipe holds that nobody reads: it cannot be done before it is interrupted
    written(tmp_path / "s", [f"{i}.csv" for i in range(1800)])
    command = [*CONCHE, "train", "s", "--target", "y", "--nodes", "1", "--out", "m"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},  # row by row
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # jobs of a shell ignore it
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("5 "):
            break
    process.send_signal(sign)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == status and said.count("\n") == 1, said
    assert re.match(rf"conche: {word}: \d+ tasks learnt, up to '\d+': saved to m.partial", said)
    assert conche.load(tmp_path / "m.partial").n_tasks_seen_ >= 5


def test_rows_and_bar_take_turns_on_a_terminal(tmp_path: Path) -> None:
    """Every row of the table is there whole, once what the bar has drawn is wiped away."""
    written(tmp_path / "s", [f"{i}.csv" for i in range(40)])
    command = [*CONCHE, "train", "s", "--target", "y", "--nodes", "1", "--out", "m"]
    lines = on_a_terminal(command, tmp_path)
    rows = [line for line in lines if re.match(r"\d+ +30 ", line)]
    assert [row.split()[0] for row in rows] == [str(i) for i in range(40)], lines
    assert all(re.fullmatch(r"\d+ +30 +\S+ +\S+ +\S+ +\S+ +\S+ *", row) for row in rows), rows


def on_a_terminal(command: list[str], cwd: Path) -> list[str]:
    """What a terminal of 120 columns shows at the end: cursor movements and wiped lines obeyed."""
    main, end = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    process = subprocess.Popen(command, cwd=cwd, stdout=end, stderr=end, env=environment)
    os.close(end)
    data = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    process.wait(timeout=60)
    os.close(main)
    return screen(data.decode())


def screen(text: str) -> list[str]:
    lines, row, column = [""], 0, 0
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", text):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\r":
            column = 0
        elif piece.startswith("\x1b["):
            count = int(re.sub(r"\D", "", piece) or 1)
            if piece.endswith("A"):
                row = max(row - count, 0)
            elif piece.endswith("K"):
                lines[row] = "" if piece == "\x1b[2K" else lines[row][:column]
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + piece + line[column + len(piece) :]
            column += len(piece)
    return lines


def test_info_says_what_a_model_is(tmp_path: Path) -> None:
    written(tmp_path / "s", [f"{i}.csv" for i in range(15)])
    options = ["--target", "y", "--nodes", "2", "--rank", "2", "--out", "m"]
    assert run("train", "s", *options, cwd=tmp_path).returncode == 0
    shown = run("info", "m", cwd=tmp_path).stdout
    assert "m: ConcheRegressor, target 'y'" in shown and "15 tasks, 450 samples, 3 columns" in shown
    assert "options: n_nodes=2, solver=Memory(rank=2)" in shown
    assert "node 0: 2 columns (a, b)" in shown and "node 1: 1 column (c)" in shown
    assert re.search(r"14 +30 +0\.", shown) and "..." in shown
    found = json.loads(run("info", "m", "--json", cwd=tmp_path).stdout)
    assert found["history"][14]["name"] == "14" and found["file_bytes"] > 1000
    done = run("info", "s", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_predict_takes_folders_and_standard_input_and_keeps_columns(tmp_path: Path) -> None:
    written(tmp_path / "s", ["1.csv", "2.csv", "10.csv"])
    run("train", "s", "--target", "y", "--nodes", "1", "--out", "m", cwd=tmp_path)
    text = task(7).assign(id=[f"row {i}" for i in range(30)]).to_csv(index=False)
    (tmp_path / "new.csv").write_text(text)
    done = run("predict", "m", "new.csv", "--keep", "id,y", "--out", "p.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found) == ["id", "y", "prediction"] and found["id"][29] == "row 29"
    assert np.max(np.abs(found["y"] - found["prediction"])) < 0.1
    done = run("predict", "m", "new.csv", "--out", "p.csv", cwd=tmp_path)
    assert done.returncode == 2 and "p.csv: is there already; --force overwrites" in done.stderr
    assert run("predict", "m", "s", "--out", "p.csv", "--force", cwd=tmp_path).returncode == 0
    assert list(pd.read_csv(tmp_path / "p.csv")["file"].unique()) == [1, 2, 10]
    piped = subprocess.run(
        [*CONCHE, "predict", "m", "-"], cwd=tmp_path, input=text, capture_output=True, text=True
    )
    assert piped.returncode == 0 and len(piped.stdout.splitlines()) == 31, piped.stderr
    done = run("predict", "m", "new.csv", "--keep", "key", cwd=tmp_path)
    assert done.returncode == 2 and "new.csv: no column 'key' to keep" in done.stderr


def test_errors_are_in_the_words_of_the_command_line(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", ["0.csv", "1.csv"])
    options = ["--target", "y", "--out", "m"]
    for asked, message in (
        (["--nodes", "9"], "--nodes 9: 3 columns fit on 1 to 3 nodes"),
        (["--rank", "-1"], "--rank -1 must be a whole number"),
        (["--scaling", "some"], "--scaling some must be one of"),
        (["--nodes", "2", "extra"], "needs quotes"),
    ):
        done = run("train", "s", *options, *asked, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    task(0).assign(name="x").to_csv(folder / "0.csv", index=False)
    (folder / "1.csv").unlink()
    done = run("train", "s", *options, cwd=tmp_path)
    assert "column 'name' is not numeric (string); --drop name leaves it out" in done.stderr
    gaps = task(0)
    gaps.loc[3, "b"] = np.nan
    gaps.to_csv(folder / "0.csv", index=False)
    done = run("train", "s", *options, cwd=tmp_path)
    assert "column 'b' has 1 missing value; --missing mean fills them" in done.stderr
