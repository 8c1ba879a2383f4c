"""What a figure is, as data: axes, curves, sizes, trials. Read from TOML, checked by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from ...errors import SpecError
from . import entries

TOP = ("title", "source", "kind", "x", "curves", "trials", "offline", "settings", "panels")


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
            "name": self.name,
            "kind": self.kind,
            "x": self.x,
            "curves": list(self.curves),
            "trials": self.trials,
            "offline": self.offline,
            "panels": [{k: v for k, v in p.items() if k != "title"} for p in self.panels],
        }


def built_in() -> list[str]:
    """fig2 ... fig12, in order.

    >>> built_in()[:3]
    ['fig2', 'fig3', 'fig4']
    """
    names = [f.name[:-5] for f in _folder().iterdir() if f.name.endswith(".toml")]
    return sorted(names, key=lambda name: int(name[3:]))


def read_spec(name: str, scale: str = "quick") -> Spec:
    """Read and check a spec.

    Parameters
    ----------
    name : a figure of the paper (``"fig4"``), or the path of a TOML file.
    scale : ``"quick"``, or ``"paper"`` for the paper's own sizes.

    >>> read_spec("fig4", "paper").trials
    100
    """
    if scale not in ("quick", "paper"):
        raise SpecError(f"scale {scale!r} must be quick or paper")
    official = name in built_in()
    source = _folder().joinpath(f"{name}.toml").read_text() if official else _read(name)
    try:
        data = tomllib.loads(source.removeprefix("\ufeff"))
        return replace(_spec(name if official else Path(name).stem, data, scale), official=official)
    except (SpecError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{name}: {error}") from error
    except RecursionError:
        raise SpecError(f"{name}: is nested too deeply") from None


def _folder() -> Traversable:
    return resources.files(__package__) / "specs"


def _read(name: str) -> str:
    """The text of a user's file."""
    if not name.endswith(".toml"):
        known = f"{built_in()[0]} ... {built_in()[-1]}"
        raise SpecError(f"no figure {name!r}: choose from {known}, all, or a .toml file of yours")
    if not re.fullmatch(r"\w[\w .+-]*", Path(name).stem):
        raise SpecError(f"{name}: its name must do as a folder's (letters, digits, . + -)")
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{name}: cannot be read ({error})") from error


def _spec(name: str, data: Mapping[str, Any], scale: str) -> Spec:
    """A checked spec from the entries of a TOML file."""
    entries.check_known(data, (*TOP, "quick", "plot"))
    kind = entries.text(data, "kind", "sweep")
    if kind not in entries.KINDS:
        raise SpecError(f"kind = {kind!r} must be one of {', '.join(entries.KINDS)}")
    x, curves = entries.axes(kind, data)
    quick = entries.table(data, "quick") if scale == "quick" else {}
    return Spec(
        name=name,
        title=entries.text(data, "title", name),
        source=entries.text(data, "source"),
        kind=kind,
        x=x,
        curves=curves,
        trials=entries.trials(quick.get("trials", data.get("trials", 100))),
        offline=entries.offline(kind, data),
        panels=tuple(_panels(kind, data, quick, (x, *curves), scale)),
        plot=entries.plot(data),
    )


def _panels(
    kind: str, data: Mapping[str, Any], quick: Mapping[str, Any], axes: tuple[str, ...], scale: str
) -> Iterator[dict[str, Any]]:
    """Each panel with all of its settings; the later of several sources wins."""
    panels = data.get("panels", [{}])
    if not isinstance(panels, list) or not all(isinstance(p, dict) for p in panels):
        raise SpecError("panels must be a list of tables ([[panels]])")
    if not 1 <= len(panels) <= len(ascii_lowercase):
        raise SpecError(f"{len(panels)} panels: there can be 1 to {len(ascii_lowercase)}")
    settings = entries.KINDS[kind][1] | entries.table(data, "settings")
    smaller = {key: value for key, value in quick.items() if key != "trials"}
    for letter, panel in zip(ascii_lowercase, panels, strict=False):
        own = {k: v for k, v in panel.items() if k not in ("title", "error", "quick")}
        in_panel = entries.table(panel, "quick") if scale == "quick" else {}
        chosen = {**settings, **own, **smaller, **in_panel}
        entries.check_settings(kind, chosen, axes)
        words = {"title": entries.text(panel, "title"), "error": entries.error(kind, panel)}
        yield {"panel": letter, **words, **chosen}
