"""Make a figure: share its units of work, keep what is done, write the results.

Every finished unit is a small file of its own, so that a run stopped at any moment goes on where it
stood. Trials have their own generators and units do not depend on the number of jobs: the table
has the same bytes whatever happened on the way.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from .. import __version__
from ..checkpoint import write_atomically
from ..simulation.model import Array
from ..tasks.mnist import find_mnist
from .digits import digits
from .learning import learning
from .plot import draw
from .spec import Spec
from .sweep import sweep
from .work import Row, Unit, Work

COLUMNS = ("panel", "x", "curve", "simulated", "stderr", "theory")
Tick = Callable[[float], None]


@dataclass(frozen=True)
class Figure:
    """A figure that has been made: its spec, its rows, and what was simulated for each."""

    spec: Spec
    rows: list[Row]
    simulated: Array
    stderr: Array
    note: str = ""

    def curve(self, panel: str, name: str) -> tuple[Array, Array, Array]:
        """x, simulated and stderr of one curve."""
        which = [i for i, r in enumerate(self.rows) if (r.panel, r.curve) == (panel, name)]
        if not which:
            raise KeyError(f"{self.spec.name} has no curve {name!r} in panel {panel}")
        return (
            np.array([self.rows[i].x for i in which]), self.simulated[which], self.stderr[which],
        )  # fmt: skip

    def curves(self, panel: str) -> list[str]:
        return list(dict.fromkeys(r.curve for r in self.rows if r.panel == panel))


def plan_work(spec: Spec, seed: int, data: Path | None) -> Work:
    if spec.kind == "digits":
        return digits(spec, seed, find_mnist(data))
    return (learning if spec.kind == "learning" else sweep)(spec, seed)


def make(
    spec: Spec,
    out: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    data: Path | None = None,
    command: str = "",
    begin: Tick = lambda total: None,
    tick: Tick = lambda done: None,
) -> tuple[Figure, bool]:
    """Make one figure in ``out/NAME``; the bool says whether it was there already.

    ``begin`` is told the cost of all that is left to do, ``tick`` the cost of each finished unit.
    """
    work = plan_work(spec, seed, data)
    folder = out / spec.name
    identity = {
        "version": __version__, "seed": seed, "spec": spec.described(), "note": work.note,
    }  # fmt: skip
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    finished = _finished(folder, key, spec, work)
    if finished is not None:
        begin(0.0)
        draw(finished, folder)  # the looks may have changed where the numbers have not
        return finished, True
    parts = folder / f".parts-{key[:16]}"
    parts.mkdir(parents=True, exist_ok=True)
    _run(work, parts, jobs, begin, tick)
    mean, stderr = _gather(work, parts, spec.trials)
    figure = Figure(spec, work.rows, mean, stderr, work.note)
    table = _table(figure)
    write_atomically(folder / "table.csv", table)
    draw(figure, folder)
    manifest = {
        "figure": spec.name, "title": spec.title, "source": spec.source, "command": command,
        **identity, "key": key, "table_sha256": hashlib.sha256(table).hexdigest(),
        "python": platform.python_version(), "numpy": np.__version__, "git_commit": _git_commit(),
    }  # fmt: skip
    write_atomically(
        folder / "manifest.json", (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    )
    shutil.rmtree(parts)
    for leftover in folder.glob(".*.tmp"):  # of a run that was killed while it wrote
        leftover.unlink()
    return figure, False


def _run(work: Work, parts: Path, jobs: int, begin: Tick, tick: Tick) -> None:
    left = [unit for unit in work.units if _read(parts, unit) is None]
    begin(sum(unit.cost for unit in left))
    # the largest first, so that the jobs finish together
    left.sort(key=lambda unit: -unit.cost)
    calls = (delayed(_one)(unit, parts) for unit in left)
    pool = Parallel(
        n_jobs=max(1, min(jobs, len(left))),
        return_as="generator_unordered",
        pre_dispatch="2*n_jobs",
    )
    for cost in pool(calls):
        tick(cost)


def _one(unit: Unit, parts: Path) -> float:
    """Run a unit and keep it. One BLAS thread always: their number changes the last bits."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what overflows shows in the table
        values = unit.run()
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomically(parts / f"{unit.name}.npy", buffer.getvalue())
    return unit.cost


def _read(parts: Path, unit: Unit) -> Array | None:
    """A unit's values, if it is finished and whole."""
    try:
        values = np.load(parts / f"{unit.name}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return values if values.shape == (len(unit.trials), len(unit.rows)) else None


def _gather(work: Work, parts: Path, trials: int) -> tuple[Array, Array]:
    """Mean and standard error of every row, over all trials in their order."""
    by_rows: dict[tuple[int, ...], list[tuple[int, Array]]] = {}
    for unit in work.units:
        values = _read(parts, unit)
        assert values is not None
        by_rows.setdefault(unit.rows, []).append((unit.trials.start, values))
    mean, stderr = np.full((2, len(work.rows)), np.nan)
    for rows, batches in by_rows.items():
        values = np.concatenate([v for _, v in sorted(batches, key=lambda pair: pair[0])])
        mean[list(rows)] = values.mean(axis=0)
        stderr[list(rows)] = values.std(axis=0, ddof=1) / np.sqrt(trials)
    return mean, stderr


def _table(figure: Figure) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row, mean, stderr in zip(figure.rows, figure.simulated, figure.stderr, strict=True):
        theory = "" if row.theory is None else repr(row.theory)
        writer.writerow(
            [row.panel, f"{row.x:.10g}", row.curve, repr(float(mean)), repr(float(stderr)), theory]
        )
    return text.getvalue().encode()


def _finished(folder: Path, key: str, spec: Spec, work: Work) -> Figure | None:
    """The figure as it was made before, if all of it is there and is what would be made now."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        table = (folder / "table.csv").read_bytes()
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get("key") != key:
        return None
    if manifest.get("table_sha256") != hashlib.sha256(table).hexdigest():
        return None
    values = list(_numbers(table.decode()))
    return Figure(
        spec, work.rows, np.array([v[0] for v in values]), np.array([v[1] for v in values]),
        work.note,
    )  # fmt: skip


def _numbers(table: str) -> Iterator[tuple[float, float]]:
    for record in csv.DictReader(io.StringIO(table)):
        yield float(record["simulated"]), float(record["stderr"])


def _git_commit() -> str | None:
    """Of the checkout that this code runs from, if it is one."""
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
