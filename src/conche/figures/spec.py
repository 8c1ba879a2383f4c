"""What a figure is, as data: axes, curves, sizes, trials. Read from TOML, checked by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

SCALES = ("quick", "paper")
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
WHOLE = ("n_nodes", "n_tasks", "n_samples", "n_features", "n_shared", "n_rounds")
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # settings, and their defaults
    "sweep": (tuple(SETTINGS), {"noise_var": 0.01, "n_rounds": 1, "correlation": 0.0}),
    "learning": (
        (*SETTINGS, "passes"),
        {"noise_var": 0.01, "n_rounds": 1, "correlation": 0.0, "passes": 1},
    ),
    "digits": (
        ("loss", "n_nodes", "n_features", "n_samples", "n_test", "n_rounds", "passes"),
        {"n_rounds": 1},
    ),
}
TOP = ("title", "source", "kind", "x", "curves", "trials", "offline", "settings", "panels",
       "quick", "plot")  # fmt: skip
PLOT = ("x_scale", "y_scale", "y_max", "y_min")
AXIS_SCALES = ("linear", "log", "log2")
ERRORS = ("generalization", "training")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LARGEST = 10**15  # of any whole number: sizes beyond it are slips


class SpecError(ValueError):
    """A spec that cannot be run; the message names the entry."""


@dataclass(frozen=True)
class Spec:
    """One figure at one scale. ``panels`` hold complete settings; an axis's setting is a list."""

    name: str
    title: str
    source: str
    kind: str
    x: str
    curves: tuple[str, ...]
    trials: int
    offline: bool
    panels: tuple[dict[str, Any], ...]
    plot: dict[str, Any] = field(default_factory=dict)
    official: bool = False  # one of the paper's, whose statements can be checked

    def described(self) -> dict[str, Any]:
        """Everything that decides the numbers, for the manifest."""
        return {
            "name": self.name, "kind": self.kind, "x": self.x, "curves": list(self.curves),
            "trials": self.trials, "offline": self.offline,
            "panels": [{k: v for k, v in p.items() if k != "title"} for p in self.panels],
        }  # fmt: skip


def built_in() -> list[str]:
    """fig2 ... fig12, in order."""
    names = [f.name[:-5] for f in _folder().iterdir() if f.name.endswith(".toml")]
    return sorted(names, key=lambda name: int(name[3:]))


def read_spec(name: str, scale: str = "quick") -> Spec:
    """A figure of the paper by its name, or a spec of the user's by the path of its TOML file."""
    if scale not in SCALES:
        raise SpecError(f"scale {scale!r} must be quick or paper")
    if name in built_in():
        text, where, stem = _folder().joinpath(f"{name}.toml").read_text(), name, name
    elif name.endswith(".toml"):
        if not re.fullmatch(r"\w[\w .+-]*", Path(name).stem):
            raise SpecError(f"{name}: its name must do as a folder's (letters, digits, . + -)")
        try:
            text, where, stem = Path(name).read_text(), name, Path(name).stem
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"{name}: cannot be read ({error})") from error
    else:
        known = f"{built_in()[0]} ... {built_in()[-1]}"
        raise SpecError(f"no figure {name!r}: choose from {known}, all, or a .toml file of yours")
    try:
        spec = _spec(stem, tomllib.loads(text.removeprefix("\ufeff")), scale)
        return replace(spec, official=where == name and name in built_in())
    except (SpecError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{where}: {error}") from error
    except RecursionError:
        raise SpecError(f"{where}: is nested too deeply") from None


def _folder() -> Any:
    return resources.files(__package__) / "specs"


def _spec(name: str, data: Mapping[str, Any], scale: str) -> Spec:
    _known(data, TOP, "")
    kind = data.get("kind", "sweep")
    for key in ("title", "source", "kind", "x"):
        if not isinstance(data.get(key, ""), str):
            raise SpecError(f"{key} = {data[key]!r} must be text")
    if kind not in KINDS:
        raise SpecError(f"kind = {kind!r} must be one of {', '.join(KINDS)}")
    allowed, defaults = KINDS[kind]
    quick = _table(data, "quick") if scale == "quick" else {}
    settings = defaults | _table(data, "settings")
    trials = quick.get("trials", data.get("trials", 100))
    curves = data.get("curves", [])
    panels = data.get("panels", [{}])
    x = data.get("x", {"learning": "task", "digits": "repetition"}.get(kind, ""))
    _check_axes(kind, x, curves)
    if not _is_whole(trials) or trials < 2:
        raise SpecError(f"trials = {trials!r} must be a whole number, at least 2")
    if not isinstance(panels, list) or not all(isinstance(p, dict) for p in panels):
        raise SpecError("panels must be a list of tables ([[panels]])")
    if not 1 <= len(panels) <= len(LETTERS):
        raise SpecError(f"{len(panels)} panels: there can be 1 to {len(LETTERS)}")
    if not isinstance(data.get("offline", False), bool):
        raise SpecError("offline must be true or false")
    if data.get("offline") and kind != "sweep":
        raise SpecError("offline = true is for sweeps alone")
    smaller = {key: value for key, value in quick.items() if key != "trials"}
    complete = []
    for index, panel in enumerate(panels):
        own = {k: v for k, v in panel.items() if k not in ("title", "error", "quick")}
        in_panel = _table(panel, "quick") if scale == "quick" else {}
        chosen = {**settings, **own, **smaller, **in_panel}
        _known(chosen, allowed, "")
        _check_settings(kind, chosen, (x, *curves))
        error = panel.get("error", "generalization")
        if error not in ERRORS or (error == "training" and kind != "learning"):
            raise SpecError(
                f"error = {error!r}: generalization, or training where kind = 'learning'"
            )
        if not isinstance(panel.get("title", ""), str):
            raise SpecError(f"title = {panel['title']!r} must be text")
        complete.append(
            {
                "panel": LETTERS[index],
                "title": str(panel.get("title", "")),
                "error": error,
                **chosen,
            }
        )
    plot = _table(data, "plot")
    _known(plot, PLOT, "plot.")
    for key in ("y_min", "y_max"):
        if key in plot and not _is_number(plot[key]):
            raise SpecError(f"plot.{key} = {plot[key]!r} must be a number")
    for key in ("x_scale", "y_scale"):
        if plot.get(key, "linear") not in AXIS_SCALES:
            raise SpecError(f"plot.{key} = {plot[key]!r} must be one of {', '.join(AXIS_SCALES)}")
    return Spec(
        name, str(data.get("title", name)), str(data.get("source", "")), kind, x, tuple(curves),
        trials, data.get("offline", False), tuple(complete), plot,
    )  # fmt: skip


def _table(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise SpecError(f"{key} must be a table ([{key}])")
    return value


def _known(given: Mapping[str, Any], allowed: tuple[str, ...], prefix: str) -> None:
    for key in given:
        if key not in allowed:
            raise SpecError(f"unknown entry {prefix}{key} (known: {', '.join(allowed)})")


def _check_axes(kind: str, x: Any, curves: Any) -> None:
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


def _check_settings(kind: str, chosen: dict[str, Any], axes: tuple[str, ...]) -> None:
    allowed, _ = KINDS[kind]
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
        for one in value if isinstance(value, list) else [value]:
            _check_value(name, one)
    if "n_shared" in chosen:
        _check_sizes(chosen)
    elif max(_values(chosen, "n_nodes")) > min(_values(chosen, "n_features")):
        raise SpecError("n_nodes must not exceed n_features")


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


def _check_sizes(chosen: dict[str, Any]) -> None:
    p = min(_values(chosen, "n_features"))
    for name in ("n_nodes", "n_shared"):
        largest = max(_values(chosen, name))
        if largest > p:
            raise SpecError(f"{name} = {largest} must not exceed n_features = {p}")


def _values(chosen: dict[str, Any], name: str) -> list[Any]:
    value = chosen[name]
    return value if isinstance(value, list) else [value]


def _is_number(value: Any) -> bool:
    """Finite, and small enough for a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(abs(value) <= 1e300)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
