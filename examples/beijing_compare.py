"""
Every solver on Beijing's air
=============================

Every solver on Beijing's air, and the offline solution as the line to reach::

    python examples/beijing_compare.py streams/beijing --out beijing.png

Reads the stream that examples/beijing.py wrote: one station a node, one month a task.
"""

# sphinx_gallery_thumbnail_path = 'figures/beijing.png'

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import conche
from conche.evaluation import evaluate
from conche.training import begin, learning

COLOURS = ("#0072B2", "#009E73", "#E69F00", "#D55E00")
MODELS = {
    "Conche (memory)": conche.ConcheRegressor(),
    "memory, rank 0": conche.ConcheRegressor(solver=conche.Memory(rank=0)),
    "damped": conche.CoCoARegressor(solver=conche.Damped()),
    "exact: Algorithm 1": conche.CoCoARegressor(),
}


def main(folder: Path, out: Path) -> None:
    """Learn the stream with every solver, print their errors, and draw them month by month."""
    import matplotlib.pyplot as plt

    def stream(part: str) -> conche.FileStream:
        return conche.FileStream(folder / part, "pm25", missing="keep")

    names = stream("train").columns
    stations = json.loads((folder / "stations.json").read_text())
    partition = [[names.index(column) for column in own] for own in stations.values()]
    fig, axis = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for (name, model), colour in zip(MODELS.items(), COLOURS, strict=True):
        model.set_params(partition=partition, fit_intercept=True, scaling=None, missing="mean")
        model, run = begin(model, stream("train"), None, resume=False)
        for now in learning(model, stream("train"), run=run):
            run = now
        found = evaluate(model, run, stream("test"), stream("train"))
        seen = [row[: i + 1].mean() for i, row in enumerate(found.values)]
        label = f"{name}: {found.average:.3f}"
        print(f"{name:20} highest {max(seen):.3f}")
        axis.plot(np.arange(1, len(seen) + 1), seen, color=colour, lw=1.8, label=label)
        print(f"{name:20} average {found.average:.4f}  forgetting {found.forgetting:+.3f}")
    best = float(np.mean(found.least_squares or [np.nan]))
    axis.axhline(best, color="black", ls="--", lw=1.2, label=f"least squares on all: {best:.3f}")
    print(f"{'least squares on all':20} average {best:.4f}")
    axis.set(
        xlabel="months learnt",
        ylabel="mean squared test error\n(mean over the months seen)",
        title="Beijing's air: 12 stations are 12 nodes, 48 months are 48 tasks",
        yscale="log",
    )
    axis.grid(alpha=0.25, which="both")
    axis.legend(title="at the end, all months", fontsize=8, title_fontsize=8)
    fig.savefig(out, dpi=140)
    print(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("stream", type=Path, help="what examples/beijing.py wrote")
    parser.add_argument("--out", type=Path, default=Path("beijing.png"))
    options = parser.parse_args()
    main(options.stream, options.out)
