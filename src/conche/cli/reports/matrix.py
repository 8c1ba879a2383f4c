"""The error matrix as a picture: the matrix, what was forgotten, and the mean over tasks seen."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ...common.arrays import Array
from ...common.atomic import write_atomically
from ...common.extras import need
from ...common.words import number
from ...evaluation import Evaluation, mean_of

MOST_NAMES = 24  # along an axis
MOST_CELLS = 12  # along a side, where cells have room for their values
WIDE = 20  # largest over smallest error from which colours and axes are logarithmic


def draw_evaluation(found: Evaluation, path: Path) -> None:
    """As a PNG, SVG or PDF."""
    plt = need("matplotlib.pyplot", "cli", "drawing")
    changes = _changes(found)
    count = 2 if changes is None else 3
    fig, axes = plt.subplots(1, count, figsize=(1.2 + 5.2 * count, 5.2), layout="constrained")
    wide = _is_wide(found)
    look = dict(cmap="cividis", norm="log" if wide else None)
    _cells(axes[0], found, found.values, look, f"{found.metric.title} on each test task")
    if changes is not None:
        most = float(np.nanmax(np.abs(changes))) or 1.0
        _cells(
            axes[1], found, changes, dict(cmap="RdBu_r", vmin=-most, vmax=most), _forgotten(found)
        )
    _curve(axes[-1], found, wide)
    buffer = io.BytesIO()
    fig.savefig(buffer, format=path.suffix[1:].lower(), dpi=130)
    plt.close(fig)
    write_atomically(path, buffer.getvalue())


def _is_wide(found: Evaluation) -> bool:
    """Whether values are of several orders of magnitude; rates are always shown as they are."""
    low, high = np.nanmin(found.values), np.nanmax(found.values)
    return bool(not found.metric.rate and low > 0 and high > WIDE * low)


def _changes(found: Evaluation) -> Array | None:
    """How much worse each task has become since it was learnt; nothing before that. None where
    there is not one test task for each that was learnt."""
    values = -found.metric.better * found.values
    if len(values) < 2 or values.shape[0] != values.shape[1]:
        return None
    since = np.tril(np.ones(values.shape, dtype=bool))
    return np.where(since, values - np.diag(values), np.nan)


def _forgotten(found: Evaluation) -> str:
    known = found.forgetting
    mean = "" if known is None else f", {_text(found, known, True)} on average"
    return f"forgetting: worse than when just learnt{mean}"


def _text(found: Evaluation, value: float, signed: bool = False) -> str:
    if found.metric.rate:
        return f"{100 * value:+.1f} %" if signed else f"{100 * value:.1f} %"
    return f"{value:+.3g}" if signed else number(value)


def _cells(axis: Any, found: Evaluation, values: Array, look: dict[str, Any], title: str) -> None:
    shown = 100 * values if found.metric.rate else values
    if found.metric.rate and "vmax" in look:
        look = {**look, "vmin": 100 * look["vmin"], "vmax": 100 * look["vmax"]}
    image = axis.imshow(shown, aspect="auto", interpolation="nearest", **look)
    axis.figure.colorbar(image, ax=axis, format="%g %%" if found.metric.rate else None)
    axis.set(xlabel="test task", ylabel="after learning", title=title)
    axis.title.set_fontsize(10)
    _names(axis.set_xticks, found.tasks, rotation=45, ha="right", rotation_mode="anchor")
    rows = found.learnt if any(found.learnt) else [f"{i + 1}" for i in range(len(values))]
    _names(axis.set_yticks, rows if len(rows) > 1 else ["all tasks"])
    if max(values.shape) <= MOST_CELLS:
        for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
            red, green, blue, _ = image.cmap(image.norm(shown[i, j]))
            light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            text = f"{shown[i, j]:.1f}" if found.metric.rate else number(shown[i, j])
            colour = "black" if light else "white"
            axis.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)


def _names(place: Any, names: list[str], **how: Any) -> None:
    step = -(-len(names) // MOST_NAMES)
    some = range(0, len(names), step)
    place(list(some), [names[i] for i in some], fontsize=7, **how)


def _curve(axis: Any, found: Evaluation, wide: bool) -> None:
    values, T = found.values, found.values.shape[1]
    unit = 100 if found.metric.rate else 1
    steps = np.arange(1, len(values) + 1)
    if len(values) == T:
        seen = [mean_of(row[: i + 1]) for i, row in enumerate(values)]
        axis.plot(
            steps, unit * np.array(seen), color="#0072B2", marker="o", ms=3, label="tasks seen"
        )
    whole = [mean_of(row) for row in values]
    label = f"all tasks (at the end {_text(found, whole[-1])})"
    look = dict(color="#D55E00", marker="s", ms=3, ls=(0, (4, 1.5, 1, 1.5)))
    axis.plot(steps, unit * np.array(whole), label=label, **look)
    for (method, beside), style in zip(found.yardsticks.items(), ("--", ":"), strict=False):
        level = mean_of(beside)
        label = f"{method} on all tasks at once ({_text(found, level)})"
        axis.axhline(unit * level, color="black", ls=style, lw=1.2, label=label)
    title = f"mean {found.metric.title} over test tasks"
    axis.set(xlabel="tasks learnt", title=title)
    axis.title.set_fontsize(10)
    if found.metric.rate:
        axis.yaxis.set_major_formatter("{x:g} %")
    if wide:
        axis.set_yscale("log")
    elif found.metric.better < 0:
        axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
