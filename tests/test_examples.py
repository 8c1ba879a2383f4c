"""The examples run as their first lines say, on data that need no download."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
STORIES = sorted(EXAMPLES.glob("plot_*.py"))


def said(name: str, *options: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_class_incremental(tmp_path: Path) -> None:
    """Conche ends where offline ridge does, and what only fine-tunes forgets."""
    out = said("class_incremental.py", "--features", "100", "--nodes", "8", "--out", tmp_path)
    last = {
        line.split("|")[1].strip(): float(line.split("|")[6])
        for line in out.splitlines()
        if line.startswith("|") and line.count("|") == 11 and "0." in line
    }
    ours, best = last["**Conche, K = 8**, 100 features"], last["offline ridge, 100 features"]
    assert abs(ours - best) < 0.02 and last["fine-tuning (network, 400-400)"] < 0.4 < ours
    assert (tmp_path / "class_incremental.png").stat().st_size > 10_000


def test_frozen_head(tmp_path: Path) -> None:
    out = said("frozen_head.py", "--out", tmp_path)
    assert "for 100% of the test samples" in out and "classes 0 to 9: accuracy 0.9" in out


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_a_story_draws_its_picture(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the site's gallery runs."""
    matplotlib.use("agg")
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    runpy.run_path(str(story), run_name="__main__")
    plt.close("all")
    assert shown, "no figure was shown"
