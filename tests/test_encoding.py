"""Texts and dates in files: columns of numbers that stand for them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.tasks import Reading

from .helpers.commands import run as run_apart
from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")

WINDS = ["north", "south", "west", "east"]


def frame(t: int, n: int = 60) -> pd.DataFrame:  # type: ignore[name-defined]  # no types there
    """In the second task a wind blows that nobody knew in the first."""
    rng = np.random.default_rng(t)
    wind = rng.choice(WINDS[: 3 + (t > 0)], n)
    time = pd.Timestamp("2024-02-28 22:00") + pd.to_timedelta(np.arange(n) + 700 * t, unit="h")
    a = rng.standard_normal(n)
    y = a + 2.0 * (wind == "north") - (wind == "east") + 0.1 * time.hour
    return pd.DataFrame({"a": a, "wind": wind, "time": time, "y": y})


def written(folder: Path, suffix: str = "csv", count: int = 3, **how: str) -> Path:
    folder.mkdir()
    for t in range(count):
        path = folder / f"{t}.{suffix}"
        table = frame(t)
        table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False, **how)
    return folder


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_texts_and_dates_as_columns(suffix: str, tmp_path: Path) -> None:
    """Every value a column of zeros and ones, those that come later too; as pandas would do it."""
    written(tmp_path / "s", suffix)
    options = [
        "--target",
        "y",
        "--nodes",
        "3",
        "--categories",
        "all",
        "--dates",
        "calendar",
        "--out",
        "m",
    ]
    done = run("train", "s", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1: 1 new column: wind=east" in done.stdout
    model = conche.load(tmp_path / "m")
    parts = ["year", "month", "day", "weekday", "hour"]
    first = ["a", "wind=north", "wind=south", "wind=west", *(f"time.{part}" for part in parts)]
    assert list(model.feature_names_in_) == [*first, "wind=east"]
    winds = [{str(model.feature_names_in_[j])[:5] for j in own} for own in model.partition_]
    assert winds == [{"a"}, {"wind="}, {"time."}]  # a column's values are all on its own node
    assert run("evaluate", "m", "s", "--target", "y", cwd=tmp_path).returncode == 0
    done = run("predict", "m", f"s/2.{suffix}", "--keep", "wind", cwd=tmp_path)
    table = frame(2)
    X = pd.get_dummies(table["wind"], prefix="wind", prefix_sep="=", dtype=float)
    X["a"] = table["a"]
    for part in parts:
        X[f"time.{part}"] = getattr(table["time"].dt, {"weekday": "day_of_week"}.get(part, part))
    expected = model.predict(X[list(model.feature_names_in_)])
    found = [line.split(",") for line in done.stdout.splitlines()]
    assert found[0] == ["wind", "prediction"] and found[1][0] == table["wind"][0]
    np.testing.assert_allclose([float(p) for _, p in found[1:]], expected, atol=1e-6)
    assert np.mean((expected - table["y"]) ** 2) < 0.05


def test_dates_as_a_number(tmp_path: Path) -> None:
    reading = Reading(categories=("wind",), dates="number")
    stream = conche.FileStream(written(tmp_path / "s"), reading=reading)
    assert stream.columns == ["a", "wind=north", "wind=south", "wind=west", "time.days"]
    days = np.asarray(stream.task(0).X)[:, -1]
    assert days[0] == pytest.approx(pd.Timestamp("2024-02-28 22:00").timestamp() / 86400)
    np.testing.assert_allclose(np.diff(days), 1 / 24)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_missing_texts_are_filled_like_numbers(suffix: str, tmp_path: Path) -> None:
    table = frame(0).drop(columns="time")
    table.loc[3, "wind"] = None
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / f"0.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    options = ["--target", "y", "--nodes", "1", "--categories", "wind", "--out", "m"]
    done = run("train", "s", *options, cwd=tmp_path)
    assert done.returncode == 2 and "has 1 missing value; --missing mean" in done.stderr
    assert run("train", "s", *options, "--missing", "mean", cwd=tmp_path).returncode == 0
    names = conche.load(tmp_path / "m").feature_names_in_
    assert list(names) == ["a", "wind=north", "wind=south", "wind=west"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "'wind' is not numeric (string); --drop wind leaves it out, --categories wind"),
        ("--drop wind", "--drop time leaves it out, --dates number or --dates calendar reads it"),
        ("--categories all --dates weekly", "--dates weekly"),
        ("--categories all --separator ;;", "--separator ;; must be one character"),
        ("--categories all --dates number --nodes 9", "--nodes 9: 3 columns fit on 1 to 3 nodes"),
    ],
)
def test_what_is_not_numeric_is_refused_with_a_hint(
    options: str, said: str, tmp_path: Path
) -> None:
    written(tmp_path / "s")
    nodes = [] if "--nodes" in options else ["--nodes", "2"]
    done = run("train", "s", "--target", "y", *nodes, "--out", "m", *options.split(), cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_too_many_texts_are_no_category(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    many = pd.DataFrame({"id": [f"n{i}" for i in range(1500)], "a": 1.0, "y": np.arange(1500.0)})
    many.to_csv(tmp_path / "s" / "0.csv", index=False)
    options = ["--target", "y", "--nodes", "1", "--out", "m", "--categories"]
    done = run("train", "s", *options, "all", cwd=tmp_path)
    assert done.returncode == 2 and "'id' has 1500 different texts" in done.stderr
    assert run("train", "s", *options, "id", cwd=tmp_path).returncode == 0


def test_other_separators(tmp_path: Path) -> None:
    written(tmp_path / "s", sep=";")
    options = ["--nodes", "1", "--out", "m", "--drop", "wind,time"]
    done = run("train", "s", "--target", "y", *options, cwd=tmp_path)
    assert done.returncode == 2 and "it looks as if --separator ; were meant" in done.stderr
    done = run("train", "s", "--target", "y", *options, "--separator", ";", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("predict", "m", "s/0.csv", "--separator", ";", cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 61
    written(tmp_path / "tabs", sep="\t")
    for name in ("tab", "\\t"):
        done = run("train", "tabs", "--target", "y", *options, "--separator", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    written(tmp_path / "s", "csv.gz")
    whole = (tmp_path / "s" / "1.csv.gz").read_bytes()
    (tmp_path / "s" / "1.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert gzip.decompress((tmp_path / "s" / "0.csv.gz").read_bytes())
    done = run("train", "s", "--target", "y", "--nodes", "1", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "1.csv.gz" in done.stderr


def test_a_text_that_was_never_learnt_is_told(tmp_path: Path) -> None:
    written(tmp_path / "s", count=2)
    options = ["--target", "y", "--nodes", "1", "--categories", "wind", "--drop", "time"]
    assert run("train", "s", *options, "--out", "m", cwd=tmp_path).returncode == 0
    other = frame(0).replace({"wind": {"west": "southwest"}})
    other.to_csv(tmp_path / "new.csv", index=False)
    done = run_apart("predict", "m", "new.csv", cwd=tmp_path)  # where a warning is a line
    assert done.returncode == 0 and "'wind=southwest' was never learnt" in done.stderr
    plain = run("predict", "m", "s/0.csv", cwd=tmp_path)
    assert plain.stderr == "" and len(done.stdout) > 100


def test_groups_name_the_column_of_the_file(tmp_path: Path) -> None:
    written(tmp_path / "s", count=2)
    (tmp_path / "g.json").write_text('{"air": ["wind"], "rest": ["a", "time"]}')
    options = ["--target", "y", "--categories", "all", "--dates", "number", "--groups", "g.json"]
    done = run("train", "s", *options, "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = conche.load(tmp_path / "m")
    names = [{str(model.feature_names_in_[j]) for j in own} for own in model.partition_]
    assert names == [{f"wind={wind}" for wind in WINDS}, {"a", "time.days"}]


def test_times_with_a_zone_have_its_hours(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    time = pd.date_range("2024-01-01 23:00", periods=5, freq="h", tz="Asia/Shanghai")
    table = pd.DataFrame({"time": time + pd.Timedelta(nanoseconds=7), "y": np.arange(5.0)})
    table.to_parquet(tmp_path / "s" / "0.parquet")
    for dates, expected in (("calendar", 23.0), ("number", time[0].timestamp() / 86400)):
        stream = conche.FileStream(tmp_path / "s", reading=Reading(dates=dates))
        assert np.asarray(stream.task(0).X)[0, -1] == pytest.approx(expected)


def one_file(folder: Path, number: int = 0, /, **columns: object) -> None:
    folder.mkdir(exist_ok=True)
    pd.DataFrame({**columns}).to_csv(folder / f"{number}.csv", index=False)


Y = np.arange(6.0)
TEXTS = ["u", "v", "u", "v", "w", "u"]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"t": TEXTS, "t=u": Y}, "--categories t", "two columns would be called 't=u'"),
        ({"t": TEXTS}, "--categories tt", "no column 'tt' for the categories; did you mean 't'?"),
        ({"t": TEXTS, "a": Y / 7}, "--categories t,a", "'a' has no texts to be categories of"),
        ({"a": ["1,5"] * 6}, "", "'a' has numbers with decimal commas;"),
        ({"t": ["31/01/2023"] * 6}, "--dates number", "dates are read as 2024-01-31"),
        ({"a": Y}, "--drop b", "no column 'b' to drop"),
        ({"height": Y}, "--drop heigth", "did you mean 'height'?"),
    ],
)
def test_what_cannot_be_encoded_is_named(
    columns: dict[str, Any], options: str, said: str, tmp_path: Path
) -> None:
    one_file(tmp_path / "s", **columns, y=Y)
    more = ["--target", "y", "--nodes", "1", "--out", "m", *options.split()]
    done = run("train", "s", *more, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_codes_are_categories_where_they_are_named(tmp_path: Path) -> None:
    one_file(tmp_path / "s", code=[3, 1, 3, 7, 1, 1], y=Y)
    options = ["--target", "y", "--nodes", "1", "--out", "m"]
    assert run("train", "s", *options, "--categories", "code", cwd=tmp_path).returncode == 0
    names = conche.load(tmp_path / "m").feature_names_in_
    assert list(names) == ["code=1", "code=3", "code=7"]
    assert run("predict", "m", "s/0.csv", cwd=tmp_path).returncode == 0
    assert run("train", "s", *options, "--categories", "all", cwd=tmp_path).returncode == 0
    assert list(conche.load(tmp_path / "m").feature_names_in_) == ["code"]


@pytest.mark.parametrize("missing", ["mean", "refuse"])
def test_columns_that_change_their_kind_are_named(missing: str, tmp_path: Path) -> None:
    one_file(tmp_path / "s", t=TEXTS, y=Y)
    one_file(tmp_path / "s", 1, t=Y / 7, y=Y)
    options = ["--target", "y", "--nodes", "1", "--out", "m", "--missing", missing]
    done = run("train", "s", *options, "--categories", "all", cwd=tmp_path)
    assert done.returncode == 2 and "1.csv: column 't'" in done.stderr
    one_file(tmp_path / "d", t=["2024-01-01"] * 6, y=Y)
    one_file(tmp_path / "d", 1, t=["soon"] * 6, y=Y)
    done = run("train", "d", *options, "--dates", "number", cwd=tmp_path)
    assert done.returncode == 2 and "1.csv: column 't'" in done.stderr


def test_kept_columns_are_copied_as_they_are(tmp_path: Path) -> None:
    one_file(tmp_path / "s", a=Y, note=["x", None, "y", "z", None, "x"], y=Y)
    options = ["--target", "y", "--nodes", "1", "--drop", "note", "--out", "m"]
    assert run("train", "s", *options, cwd=tmp_path).returncode == 0
    for out in ("p.csv", "p.parquet"):
        done = run("predict", "m", "s/0.csv", "--keep", "note", "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert pd.read_parquet(tmp_path / "p.parquet")["note"].fillna("").tolist()[1] == ""
    done = run("evaluate", "m", "s", "--target", "a", cwd=tmp_path)
    assert done.returncode == 2 and "a column the model predicts from" in done.stderr
