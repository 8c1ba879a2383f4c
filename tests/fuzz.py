"""An adversary that does not tire: random streams, files and options, until something is wrong.

    python -m tests.fuzz --minutes 10            # prints its seed; --seed repeats it
    python -m tests.fuzz --case '{"kind": ...}'  # one case again

What must hold: whatever comes in, there is a result or one error of ours in one line; results are
finite; a saved model goes on to the last bit; columns on one node or on several teach the same; and
bounds hold. A case that fails is made smaller as long as it fails, and printed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import conche
from conche.common.arrays import Array

from .helpers.commands import run_here

Case = dict[str, Any]
SMALLEST = {"tasks": 1, "rows": 1, "columns": 1, "nodes": 1, "outputs": 1}


def drawn(rng: np.random.Generator) -> Case:
    """A case: everything about it is in here."""
    columns = int(np.exp(rng.uniform(0, np.log(60))))
    return {
        "kind": str(rng.choice(["stream", "file", "model"], p=[0.6, 0.25, 0.15])),
        "seed": int(rng.integers(2**31)),
        "tasks": int(rng.integers(1, 6)),
        "rows": int(np.exp(rng.uniform(0, np.log(200)))),
        "columns": columns,
        "nodes": int(rng.integers(1, columns + 1)),
        "outputs": int(rng.integers(1, 3)),
        "dtype": str(rng.choice(["float64", "float32"])),
        "labels": bool(rng.random() < 0.3),
        "loss": str(rng.choice(["squared", "logistic"])),
        "solver": str(rng.choice(["memory", "memory", "exact", "damped"])),
        "rank": None if rng.random() < 0.5 else int(rng.integers(0, 30)),
        "intercept": bool(rng.random() < 0.5),
        "scaling": [None, "first", "running"][rng.integers(3)],
        "units": float(rng.choice([0, 0, 2, 4])),
        "origin": float(rng.choice([0, 0, 10, 1000])),
        "common": float(rng.choice([0, 0.9, 0.999])),
        "noise": float(10 ** rng.uniform(-6, 1)),
        "sparse": bool(rng.random() < 0.1),
        "weights": bool(rng.random() < 0.3),
        "classes": int(rng.integers(1, 5)),
        "damage": str(rng.choice(["none", "cut", "flip", "nan", "rename", "text", "empty"])),
        "option": str(rng.choice(["", "--rank -1", "--damping x", "--nodes 0", "--classify"])),
        "file": str(rng.choice(["npz", "csv", "parquet"])),
    }


def stream(case: Case) -> Iterator[tuple[Array, Array]]:
    """The tasks of a case."""
    rng = np.random.default_rng(case["seed"])
    p, outputs = case["columns"], case["outputs"]
    scale, origin = 10 ** rng.uniform(-1, 1, p) ** case["units"], case["origin"] * rng.random(p)
    w = rng.standard_normal((p, outputs))
    constant = rng.random(p) < 0.1
    for _ in range(case["tasks"]):
        n = int(rng.integers(1, case["rows"] + 1))
        Z = case["common"] ** 0.5 * rng.standard_normal((n, 1))
        Z = Z + (1 - case["common"]) ** 0.5 * rng.standard_normal((n, p))
        Z[:, constant] = 1.0
        Y = Z @ w + case["noise"] * rng.standard_normal((n, outputs))
        y = np.digitize(Y[:, 0], np.arange(case["classes"] - 1)) if case["labels"] else Y
        X = ((Z + origin) * scale).astype(case["dtype"])
        yield X, (y[:, 0] if y.ndim == 2 and outputs == 1 else y)


def model_of(case: Case, nodes: int) -> Any:
    """The model of a case on so many nodes."""
    solver: Any = case["solver"]
    if solver == "memory":
        solver = conche.Memory(rank=case["rank"])
    rounds = 30 if case["solver"] == "memory" else 3
    steps = "cg" if case["solver"] == "memory" else "safe"
    options: dict[str, Any] = dict(solver=solver, n_rounds=rounds, steps=steps)
    options |= dict(fit_intercept=case["intercept"], scaling=case["scaling"])
    if case["labels"]:
        return conche.CoCoAClassifier(nodes, loss=case["loss"], **options)
    return conche.CoCoARegressor(nodes, **options)


def teach(model: Any, case: Case, skip: int = 0) -> Any:
    from scipy import sparse

    for i, (X, y) in enumerate(stream(case)):
        if i >= skip:
            more = {}
            if case["weights"]:
                more["sample_weight"] = 1.0 + np.random.default_rng(i).integers(0, 3, len(X))
            model.partial_fit(sparse.csr_array(X) if case["sparse"] else X, y, **more)
    return model


def try_stream(case: Case) -> None:
    """Finite; the same on one node, if nothing is lost; saved and loaded, to the last bit."""
    model = teach(model_of(case, case["nodes"]), case)
    assert np.all(np.isfinite(model.coef_)), "not finite"
    for record in model.history_:
        assert record["bound"] >= 0, "a negative bound"
    rank = 2048 if case["rank"] is None else case["rank"]
    lossless = case["solver"] == "memory" and rank > case["columns"]
    if lossless and case["nodes"] > 1 and not (case["labels"] and case["loss"] == "logistic"):
        alone = teach(model_of(case, 1), case)
        X = np.concatenate([X for X, _ in stream(case)])
        ours, theirs = (m._decide(X) for m in (model, alone))
        size = max(float(np.max(np.abs(theirs))), 1e-30)
        far = float(np.max(np.abs(ours - theirs))) / size
        reach = np.max(np.abs(X) @ np.abs(np.atleast_2d(alone.coef_)).T) / size
        rounding = 16 * float(np.finfo(case["dtype"]).eps) * float(reach)  # of coef_ itself
        assert far <= 1e-5 + rounding, f"one node differs by {far:.1e}"


def try_model(case: Case) -> None:
    """A model that was saved goes on as if it had not been; a damaged one is refused."""
    rng = np.random.default_rng(case["seed"])
    half = case | {"tasks": max(case["tasks"] // 2, 1)}
    through = teach(model_of(case, case["nodes"]), half)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        conche.save(through, path)
        again = conche.load(path)
        assert np.array_equal(again.coef_, through.coef_), "loaded coefficients differ"
        data = bytearray(path.read_bytes())
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            conche.load(path)
        except conche.ModelFileError:
            return
        raise AssertionError("a flipped bit went unnoticed")


def try_file(case: Case) -> None:
    """``conche train``: done, or one line and status 2."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "s", case)
        damage(folder / "s", case)
        command: list[object] = ["train", folder / "s", "--target", "y", "--out", folder / "m"]
        command += ["--nodes", case["nodes"], "--solver", case["solver"], *case["option"].split()]
        done = run_here(*command)
        lines = [line for line in done.stderr.splitlines() if line.startswith("conche: ")]
        assert done.returncode in (0, 2), f"status {done.returncode}: {done.stderr}"
        assert done.returncode == 0 or lines, f"nothing was said: {done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        assert (folder / "m").exists() == (done.returncode == 0), "a model of a failed run"
        left = [path.name for path in folder.iterdir() if path.name not in ("s", "m")]
        if left == ["m.partial"] and "m.partial" in done.stderr:  # said, and a model
            conche.load(folder / "m.partial")
        else:
            assert not left, f"left behind: {left}"


def write(folder: Path, case: Case) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    folder.mkdir()
    for i, (X, y) in enumerate(stream(case | {"outputs": 1})):
        file = folder / f"{i}.{case['file']}"
        if case["file"] == "npz":
            np.savez(file, X=X, y=y)
            continue
        table = pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])} | {"y": y})
        (pa.parquet.write_table if case["file"] == "parquet" else pa.csv.write_csv)(table, file)


def damage(folder: Path, case: Case) -> None:
    rng = np.random.default_rng(case["seed"])
    files = sorted(folder.iterdir())
    file = files[int(rng.integers(len(files)))]
    data = bytearray(file.read_bytes())
    if case["damage"] == "cut":
        data = data[: int(rng.integers(len(data)))]
    elif case["damage"] == "flip":
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif case["damage"] == "empty":
        data = bytearray()
    elif case["damage"] in ("nan", "rename", "text") and case["file"] == "csv":
        old, new = {"nan": (b"1", b""), "rename": (b"c0", b"d0"), "text": (b"2", b"zwei")}[
            case["damage"]
        ]
        data = bytearray(bytes(data).replace(old, new, 1))
    file.write_bytes(data)


KINDS: dict[str, Callable[[Case], None]] = {
    "stream": try_stream,
    "model": try_model,
    "file": try_file,
}


def fails(case: Case) -> str | None:
    """What is wrong with it; None where nothing is. Errors of ours are answers."""
    case = case | {"nodes": min(case["nodes"], case["columns"])}
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            KINDS[case["kind"]](case)
    except conche.ConcheError as error:
        return None if "\n" not in str(error) else f"two lines: {error}"
    except Exception:
        return traceback.format_exc(limit=-3)
    return None


def shrunk(case: Case) -> Case:
    """The smallest case in reach that still fails."""
    while True:
        for key, least in SMALLEST.items():
            for value in (least, case[key] // 2, case[key] - 1):
                smaller = case | {key: max(value, least)}
                if smaller != case and fails(smaller):
                    case = smaller
                    break
            else:
                continue
            break
        else:
            return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--case", type=json.loads, default=None)
    options = parser.parse_args()
    if options.case is not None:
        sys.exit(fails(options.case) or 0)
    seed = np.random.SeedSequence().entropy if options.seed is None else options.seed
    print(f"seed {seed}")
    rng, until, count = np.random.default_rng(seed), time.monotonic() + 60 * options.minutes, 0
    while time.monotonic() < until:
        case, count = drawn(rng), count + 1
        if fails(case):
            case = shrunk(case)
            sys.exit(f"after {count} cases:\n{fails(case)}\n--case '{json.dumps(case)}'")
    print(f"{count} cases, and nothing was wrong")


if __name__ == "__main__":
    main()
