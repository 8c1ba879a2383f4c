"""A figure's plot: simulation as lines, theory as markers, offline dashed."""

from __future__ import annotations

import io
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...common.atomic import write_atomically
from ...common.extras import need
from .entries import SETTINGS
from .work import Figure

# Okabe and Ito's colours, which all eyes can tell apart; markers and dashes say it again
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX*"
DASHES = ("-", (0, (4, 1.5, 1, 1.5)), ":")
GREEK = {"sigma^2": r"$\sigma^2$", "eps": r"$\varepsilon$"}
SYMBOLS = {symbol: GREEK.get(symbol, f"${symbol}$") for symbol, _ in SETTINGS.values()}
Y_LABELS = {
    "generalization": "generalization error $G_T$",
    "training": "training error $f_t$",
}


def draw(figure: Figure, folder: Path) -> None:
    """Write figure.png and figure.svg, the same bytes for the same numbers."""
    plt = need("matplotlib.pyplot", "cli", "drawing figures")
    panels = figure.spec.panels
    with (
        plt.rc_context({"svg.hashsalt": "conche", "path.simplify_threshold": 0.5}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # a glyph that the font lacks, limits that are equal
        size = (1.6 + 4.9 * len(panels), 4.8)
        fig, axes = plt.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
        for axis, panel in zip(axes[0], panels, strict=True):
            _panel(axis, figure, panel)
        fig.suptitle("\n".join(_heading(figure)), fontsize=10)
        handles = {
            label: handle
            for axis in axes[0]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        legend = {"loc": "outside lower center", "fontsize": 8, "ncols": 3 * min(len(panels), 2)}
        fig.legend(handles.values(), handles.keys(), **legend)
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # laid out once, for both files
        for name, options in (
            ("figure.png", {"dpi": 150, "metadata": {"Software": None}}),
            ("figure.svg", {"metadata": {"Date": None}}),
        ):
            buffer = io.BytesIO()
            fig.savefig(buffer, format=name[-3:], **options)
            write_atomically(folder / name, buffer.getvalue())
        plt.close(fig)


def _heading(figure: Figure) -> list[str]:
    """What it shows, and the settings that all panels have in common."""
    spec = figure.spec
    common = {k: v for k, v in spec.panels[0].items() if all(p[k] == v for p in spec.panels)}
    lines = [*textwrap.wrap(_plain(spec.title), 75 * len(spec.panels)), _settings(common)]
    lines[-1] += f"; {spec.trials} trials"
    return [*lines, *([f"({figure.note})"] if figure.note else [])]


def _plain(title: str) -> str:
    """A user's words are words, not mathematics."""
    return title.replace("$", r"\$")


def _settings(settings: dict[str, Any]) -> str:
    """Single values with their symbols; no correlation goes without saying."""
    shown = []
    for name, (symbol, _) in SETTINGS.items():
        value = settings.get(name, [])
        unsaid = isinstance(value, list) or (name == "correlation" and value == 0)
        if not unsaid:
            shown.append(f"{SYMBOLS[symbol]} = {value:g}")
    return ", ".join(shown)


def _panel(axis: Any, figure: Figure, panel: dict[str, Any]) -> None:
    """One panel: its curves, the theory on them, its axes and its title."""
    spec = figure.spec
    letter = panel["panel"]
    index = [i for i, row in enumerate(figure.rows) if row.panel == letter]
    for name in figure.curves(letter):
        which = [i for i in index if figure.rows[i].curve == name]
        x = [figure.rows[i].x for i in which]
        colour, marker, dashes = _style(name, figure.curves(letter))
        heavy = np.array([figure.rows[i].heavy for i in which])  # whose spread says nothing
        y, error = figure.simulated[which], np.where(heavy, np.nan, 2 * figure.stderr[which])
        axis.plot(x, y, color=colour, ls=dashes, lw=1.4)
        axis.fill_between(x, y - error, y + error, color=colour, alpha=0.18, lw=0)
        known = [i for i in which if figure.rows[i].theory is not None]
        theory = [[getattr(figure.rows[i], of) for i in known] for of in ("x", "theory")]
        mark: dict[str, Any] = dict(marker=marker, ms=5, mfc="none", mew=1.3, color=colour)
        axis.plot(*theory, ls="", **mark)
        shown = mark if known else dict(color=colour)  # in the legend: line and marker together
        axis.plot([], [], ls=dashes, lw=1.4, label=pretty(name), **shown)
    if any(figure.rows[i].theory is not None for i in index):
        axis.plot([], [], ls="", marker="o", mfc="none", color="0.3", label="theory (markers)")
    axis.fill_between([], [], [], color="0.3", alpha=0.25, lw=0, label="two standard errors")
    axis.set_xlabel(_x_label(spec.x))
    axis.set_ylabel("test error rate" if spec.kind == "digits" else Y_LABELS[panel["error"]])
    for scale, setter in (("x_scale", axis.set_xscale), ("y_scale", axis.set_yscale)):
        chosen = spec.plot.get(scale, "linear")
        if chosen != "linear":
            setter("log", base=2 if chosen == "log2" else 10)
    if spec.plot.get("x_scale") == "log2":
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _limit(axis, figure, index)
    _beyond(axis, figure, index)
    own = {k: v for k, v in panel.items() if any(p[k] != v for p in spec.panels)}
    words = ", ".join(part for part in (_settings(own), _plain(panel["title"])) if part)
    if len(spec.panels) > 1:
        axis.set_title(f"({letter}) {words}", fontsize=10)
    axis.grid(alpha=0.25)


def _limit(axis: Any, figure: Figure, index: list[int]) -> None:
    """Where blocks are nearly square the error is unbounded: let it leave the frame."""
    tame = [i for i in index if not figure.rows[i].heavy]
    if tame and len(tame) < len(index):
        values = figure.simulated[tame]
        log = figure.spec.plot.get("y_scale") == "log"
        low = values.min() / 1.3 if log else 0.0
        axis.set_ylim(low, values.max() * (3 if log else 1.3))
    chosen = {k: figure.spec.plot[k] for k in ("y_min", "y_max") if k in figure.spec.plot}
    axis.set_ylim(bottom=chosen.get("y_min"), top=chosen.get("y_max"))


def _beyond(axis: Any, figure: Figure, index: list[int]) -> None:
    """An arrow at the frame for every point that is above it, in the colour of its curve."""
    top = axis.get_ylim()[1]
    panel = figure.rows[index[0]].panel if index else ""
    for i in index:
        row = figure.rows[i]
        values = [figure.simulated[i], *([] if row.theory is None else [row.theory])]
        if max(values) > top:
            colour, _, _ = _style(row.curve, figure.curves(panel))
            look = dict(marker=6, ms=7, color=colour, ls="", clip_on=False, zorder=5)
            axis.plot([row.x], [top], **look)


def _style(name: str, names: list[str]) -> tuple[str, str, Any]:
    """Colour and marker by a curve's first setting, dashes by its others; offline is dashed."""
    if name == "offline":
        return "black", "x", "--"
    first, rest = _split(name.removeprefix("offline, "))
    drawn = [_split(other) for other in names if not other.startswith("offline")]
    firsts = list(dict.fromkeys(f for f, _ in drawn))
    rests = list(dict.fromkeys(r for _, r in drawn))
    place = firsts.index(first) if first in firsts else len(firsts)
    solid = DASHES[rests.index(rest) % len(DASHES)] if rest in rests else "-"
    dashes = "--" if name.startswith("offline") else solid
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], dashes


def _split(name: str) -> tuple[str, str]:
    first, _, rest = name.partition(", ")
    return first, rest


def pretty(curve: str) -> str:
    """A curve's name with the paper's symbols set as mathematics.

    >>> pretty("T=4, T_c=1")
    '$T$ = 4, $T_c$ = 1'
    """
    parts = []
    for part in curve.split(", "):
        symbol, equals, value = part.partition("=")
        parts.append(f"{SYMBOLS.get(symbol, symbol)}{equals and ' = '}{value}")
    return ", ".join(parts)


def _x_label(x: str) -> str:
    if x in SETTINGS:
        symbol, words = SETTINGS[x]
        return f"{words} {SYMBOLS[symbol]}"
    return {"task": "task index", "repetition": "repetitions of the five tasks"}[x]
