"""Streams whose nodes have folders of their own, beside the same data in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from conche.common.arrays import Array
from conche.common.sealed import unseal
from conche.nodes import NodeState
from conche.nodes.scaling import Scaling

from .streams import DATA, need

NODES = ("north", "south")
TASKS = ("jan", "mar", "may")
HEAD = """
key = ["day", "hour"]
{more}
[target]
files = "target"
column = "y"
"""


def describe(root: Path, nodes: Sequence[str], more: str = "", name: str = "stream.toml") -> Path:
    """The TOML file of a stream whose target and nodes have a folder each in ``root``."""
    parts = [f'[nodes.{node}]\nfiles = "{node}"\n' for node in nodes]
    (root / name).write_text(HEAD.format(more=more) + "\n".join(parts))
    return root / name


def put(file: Path, columns: Mapping[str, Any]) -> None:
    """A Parquet or CSV file, as its name ends; NaN is a missing value."""
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        name: pa.array(values, from_pandas=True) if np.asarray(values).dtype.kind == "f" else values
        for name, values in columns.items()
    }
    table = pa.table(arrays)
    (pa.parquet.write_table if file.suffix == ".parquet" else pa.csv.write_csv)(table, file)


def write_beijing(root: Path, months: int | None = None, gone: float = 0.05) -> list[str]:
    """Beijing's air: a folder for every station, its hours shuffled and some of them missing, a
    folder for the target, and ``table``, which has all of it. Answers the stations' names."""
    file = need("beijing-air", "beijing12.npz", data=DATA)
    with np.load(file, allow_pickle=False) as found:
        X, time = found["X"].astype(float), found["time"].astype(int)
        stations, columns = [str(s) for s in found["stations"]], [str(c) for c in found["columns"]]
    y = np.log1p(np.roll(X[:, 0, columns.index("PM2.5")], -6))
    days = np.array([f"{year}-{month:02d}-{day:02d}" for year, month, day, _ in time])
    month = np.array([day[:7] for day in days])
    rng = np.random.default_rng(0)
    for name in np.unique(month)[:months].tolist():
        rows = rng.permutation(np.flatnonzero((month == name) & np.isfinite(y)))
        whole = {"y": y[rows]}
        put(root / "target" / f"{name}.parquet", _keyed(days, time, rows) | {"y": y[rows]})
        for s, station in enumerate(stations):
            there = rng.random(len(rows)) >= gone
            own = rng.permutation(rows[there])
            values = {column: X[own, s, j] for j, column in enumerate(columns)}
            put(root / station / f"{name}.parquet", _keyed(days, time, own) | values)
            known = np.where(there[:, None], X[rows, s], np.nan)
            whole |= {f"{station}/{column}": known[:, j] for j, column in enumerate(columns)}
        put(root / "table" / f"{name}.parquet", whole)
    return stations


def _keyed(days: Array, time: Array, rows: Array) -> dict[str, Any]:
    return {"day": days[rows], "hour": time[rows, 3]}


def small(root: Path) -> None:
    """Three tasks of 30 rows, two nodes with 2 and 3 columns, everybody's rows in another order."""
    rng = np.random.default_rng(1)
    for task in TASKS:
        X = rng.standard_normal((30, 5))
        y = X @ [1.0, -2.0, 0.5, 3.0, 0.0] + 0.1 * rng.standard_normal(30)
        own = {"target": {"y": y}, "north": {"a": X[:, 0], "b": X[:, 1]}}
        own["south"] = {name: X[:, j] for j, name in enumerate("cde", start=2)}
        for folder, columns in own.items():
            order = rng.permutation(30)
            key = {"day": [f"d{i // 24}" for i in order], "hour": [i % 24 for i in order]}
            put(root / folder / f"{task}.csv", key | {k: v[order] for k, v in columns.items()})
    describe(root, NODES)


def kept_at_home(root: Path) -> dict[str, float]:
    """The coefficients, means and scales that the nodes keep at home."""
    found: dict[str, float] = {}
    for file in (root / "homes").glob("*.conche"):
        state = NodeState.from_arrays(unseal(file, 1)[1])
        coef, _ = Scaling().outward(state.weights, state.numbers)
        unit = state.kept.get("unit", state.numbers["scale"])
        for name, array in {"coef": coef, "mean": state.numbers["seen"][1], "unit": unit}.items():
            values = enumerate(np.ravel(array).tolist())
            found |= {f"{file.name[:5]} {name} {i}": value for i, value in values}
    return found


def edit(file: Path, change: Callable[[list[list[str]]], object]) -> None:
    """Change a CSV file: its rows, the first of which has the names."""
    rows = [line.split(",") for line in file.read_text().replace('"', "").splitlines()]
    change(rows)
    file.write_text("".join(",".join(row) + "\n" for row in rows))


def without_column(name: str) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        j = rows[0].index(name)
        for row in rows:
            del row[j]

    return change


def renamed(old: str, new: str) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        rows[0][rows[0].index(old)] = new

    return change


def in_column(name: str, text: str) -> Callable[[list[list[str]]], None]:
    """Another text for every value, which is the * in it."""

    def change(rows: list[list[str]]) -> None:
        j = rows[0].index(name)
        for row in rows[1:]:
            row[j] = text.replace("*", row[j])

    return change
