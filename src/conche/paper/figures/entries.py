"""The entries of a spec: which there are, and what each may be. What may not be is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SpecError

SETTINGS: dict[str, tuple[str, str]] = {  # name: symbol of the paper, words for an axis
    "n_nodes": ("K", "number of nodes"),
    "n_tasks": ("T", "number of tasks"),
    "n_samples": ("n_t", "samples per task"),
    "n_features": ("p", "number of unknowns"),
    "n_shared": ("p_S", "shared unknowns"),
    "noise_var": ("sigma^2", "noise variance"),
    "n_rounds": ("T_c", "rounds per task"),
    "correlation": ("eps", "feature correlation"),
}
DIGITS = ("loss", "n_nodes", "n_features", "n_samples", "n_test", "n_rounds", "passes")
USUAL = {"noise_var": 0.01, "n_rounds": 1, "correlation": 0.0}
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # settings, and their defaults
    "sweep": (tuple(SETTINGS), USUAL),
    "learning": ((*SETTINGS, "passes"), USUAL | {"passes": 1}),
    "digits": (DIGITS, {"n_rounds": 1}),
}
X_OF_KIND = {"learning": "task", "digits": "repetition"}  # a sweep's is one of the settings
AXIS_SCALES = ("linear", "log", "log2")
ERRORS = ("generalization", "training")
LARGEST = 10**15  # of any whole number: sizes beyond it are slips


def check_known(given: Iterable[str], allowed: tuple[str, ...], prefix: str = "") -> None:
    """Refuse an entry that does not exist."""
    for key in given:
        if key not in allowed:
            raise SpecError(f"unknown entry {prefix}{key} (known: {', '.join(allowed)})")


def table(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The table called ``key``; empty where there is none."""
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise SpecError(f"{key} must be a table ([{key}])")
    return value


def text(data: Mapping[str, Any], key: str, default: str = "") -> str:
    """The words called ``key``."""
    value = data.get(key, default)
    if not isinstance(value, str):
        raise SpecError(f"{key} = {value!r} must be text")
    return value


def axes(kind: str, data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The setting along the x axis, and those that make curves."""
    x, curves = text(data, "x", X_OF_KIND.get(kind, "")), data.get("curves", [])
    if not isinstance(curves, list) or any(str(c) not in SETTINGS for c in curves):
        raise SpecError(f"curves = {curves!r} must be a list of {', '.join(SETTINGS)}")
    if kind == "sweep" and x not in SETTINGS:
        raise SpecError(f"x = {x!r} must be one of {', '.join(SETTINGS)}")
    if kind == "learning" and x != "task":
        raise SpecError("x of a learning curve is 'task'")
    if kind == "digits" and (x != "repetition" or curves):
        raise SpecError("digits have x = 'repetition' and a curve for every task")
    if x in curves or len(set(curves)) < len(curves):
        raise SpecError("x and curves must be different settings")
    return x, tuple(curves)


def trials(value: Any) -> int:
    """The number of trials."""
    if not _is_whole(value) or value < 2:
        raise SpecError(f"trials = {value!r} must be a whole number, at least 2")
    return int(value)


def offline(kind: str, data: Mapping[str, Any]) -> bool:
    """Whether to show the offline solution too."""
    value = data.get("offline", False)
    if not isinstance(value, bool):
        raise SpecError("offline must be true or false")
    if value and kind != "sweep":
        raise SpecError("offline = true is for sweeps alone")
    return value


def error(kind: str, panel: Mapping[str, Any]) -> str:
    """Which error a panel shows."""
    value = panel.get("error", "generalization")
    if value not in ERRORS or (value == "training" and kind != "learning"):
        raise SpecError(f"error = {value!r}: generalization, or training where kind = 'learning'")
    return str(value)


def plot(data: Mapping[str, Any]) -> dict[str, Any]:
    """How to draw it."""
    chosen = table(data, "plot")
    check_known(chosen, ("x_scale", "y_scale", "y_max", "y_min"), "plot.")
    for key in ("y_min", "y_max"):
        if key in chosen and not _is_number(chosen[key]):
            raise SpecError(f"plot.{key} = {chosen[key]!r} must be a number")
    for key in ("x_scale", "y_scale"):
        if chosen.get(key, "linear") not in AXIS_SCALES:
            raise SpecError(f"plot.{key} = {chosen[key]!r} must be one of {', '.join(AXIS_SCALES)}")
    return chosen


def check_settings(kind: str, chosen: Mapping[str, Any], axes: tuple[str, ...]) -> None:
    """Refuse settings of a panel that are unknown, missing, impossible, or lists out of place."""
    allowed, _ = KINDS[kind]
    check_known(chosen, allowed)
    for name in allowed:
        if name not in chosen:
            raise SpecError(f"{name} is missing")
        value = chosen[name]
        if name in axes:
            if not isinstance(value, list) or not value:
                raise SpecError(f"{name} is an axis: give a list of values")
            if len({f"{v:g}" if _is_number(v) else str(v) for v in value}) < len(value):
                raise SpecError(f"{name} lists a value twice")
        elif isinstance(value, list):
            raise SpecError(f"{name} is a list, but neither x nor one of the curves")
        for one in _values(chosen, name):
            _check_value(name, one)
    p = min(_values(chosen, "n_features"))
    for name in ("n_nodes", "n_shared"):
        largest = max(_values(chosen, name), default=0)
        if largest > p:
            raise SpecError(f"{name} = {largest} must not exceed n_features = {p}")


def _check_value(name: str, value: Any) -> None:
    if name == "loss":
        if value not in ("squared", "logistic"):
            raise SpecError(f"loss = {value!r} must be 'squared' or 'logistic'")
        return
    least = 0 if name in ("n_shared", "noise_var", "correlation") else 1
    whole = name not in ("noise_var", "correlation")
    number = _is_whole(value) if whole else _is_number(value)
    if not number or not least <= value <= LARGEST:
        what = "a whole number" if whole else "a number"
        shown = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:20]}..."
        raise SpecError(f"{name} = {shown} must be {what} of {least} to 1e15")
    if name == "correlation" and value >= 1:
        raise SpecError(f"correlation = {value!r} must lie below 1")


def _values(chosen: Mapping[str, Any], name: str) -> list[Any]:
    """One value or many, as a list; empty where the setting does not exist."""
    value = chosen.get(name, [])
    return value if isinstance(value, list) else [value]


def _is_number(value: Any) -> bool:
    """Finite, and small enough for a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(abs(value) <= 1e300)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
