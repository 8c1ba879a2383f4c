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
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...common.atomic import write_atomically
from ...common.device import find_device
from ...common.version import __version__
from ...tasks import find_mnist
from .digits import digits
from .learning import learning
from .plot import draw
from .spec import Spec
from .sweep import sweep
from .work import Figure, Unit, Work

COLUMNS = ("panel", "x", "curve", "simulated", "stderr", "theory")
Tick = Callable[[float], None]


class Machine(NamedTuple):
    """What a figure is made on."""

    jobs: int = 1  # processes; one on a GPU
    device: str | None = None  # "cpu" or "cuda"


ALONE = Machine()


def plan_work(spec: Spec, seed: int, data: Path | None, device: str | None = None) -> Work:
    """What there is to do for a figure; ``data`` is the folder with MNIST's files, if any."""
    if spec.kind == "digits":
        return digits(spec, seed, find_mnist(data), device)
    return (learning if spec.kind == "learning" else sweep)(spec, seed, device)


def make(
    spec: Spec,
    out: Path,
    *,
    seed: int = 0,
    machine: Machine = ALONE,
    data: Path | None = None,
    command: str = "",
    begin: Tick = lambda total: None,
    tick: Tick = lambda done: None,
) -> tuple[Figure, bool]:
    """Make one figure in ``out/NAME``; the bool says whether it was there already.

    Parameters
    ----------
    spec, out : the figure, and the folder for its folder.
    seed : the same seed gives the same table on one device, for any number of processes.
    machine : processes and device.
    data : folder with MNIST's files, for figures that show digits.
    command : what the manifest says was run.
    begin, tick : told the cost of all that is left to do, and that of each finished unit.
    """
    where = find_device(machine.device).name
    work = plan_work(spec, seed, data, machine.device)
    folder = out / spec.name
    described = spec.described()
    identity = {"version": __version__, "seed": seed, "spec": described, "note": work.note}
    identity |= {"device": where}
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    finished = _finished(folder, key, spec, work)
    if finished is not None:
        begin(0.0)
        draw(finished, folder)  # the looks may have changed where the numbers have not
        return finished, True
    parts = folder / f".parts-{key[:16]}"
    parts.mkdir(parents=True, exist_ok=True)
    _run(work, parts, machine.jobs if where == "cpu" else 1, begin, tick)
    mean, stderr = _gather(work, parts, spec.trials)
    figure = Figure(spec, work.rows, mean, stderr, work.note)
    table = _table(figure)
    write_atomically(folder / "table.csv", table)
    draw(figure, folder)
    manifest = identity | {
        "figure": spec.name,
        "title": spec.title,
        "source": spec.source,
        "command": command,
        "key": key,
        "table_sha256": hashlib.sha256(table).hexdigest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "git_commit": _git_commit(),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / "manifest.json", text.encode())
    shutil.rmtree(parts)
    for leftover in folder.glob(".*.tmp"):  # of a run that was killed while it wrote
        leftover.unlink()
    return figure, False


def _run(work: Work, parts: Path, jobs: int, begin: Tick, tick: Tick) -> None:
    """Run the units that are not there yet, and keep each as soon as it is done."""
    from joblib import Parallel, delayed

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
    from threadpoolctl import threadpool_limits

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
        assert values is not None  # _run has just written it
        by_rows.setdefault(unit.rows, []).append((unit.trials.start, values))
    mean, stderr = np.full((2, len(work.rows)), np.nan)
    for rows, batches in by_rows.items():
        values = np.concatenate([v for _, v in sorted(batches, key=lambda pair: pair[0])])
        mean[list(rows)] = values.mean(axis=0)
        stderr[list(rows)] = values.std(axis=0, ddof=1) / np.sqrt(trials)
    return mean, stderr


def _table(figure: Figure) -> bytes:
    """table.csv: one row a point, numbers as Python writes them, so that none is rounded."""
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
    records = list(csv.DictReader(io.StringIO(table.decode())))
    simulated, stderr = (np.array([float(r[of]) for r in records]) for of in COLUMNS[3:5])
    return Figure(spec, work.rows, simulated, stderr, work.note)


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
