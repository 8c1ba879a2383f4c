"""The past of a lossless memory as arrays and a description, and back. Of products a triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common.arrays import Array, here
from .memory import Past, Solution, Sums
from .memory.past import Path

NUMBERS = ("n", "fresh", "squares")
ARRAYS = ("origin", "mean", "XY", "YY")
FOUND = ("weights", "offset", "ridge", "penalty", "variance")


def past_arrays(past: Past, found: Solution | None) -> dict[str, Array]:
    """All arrays by name."""
    arrays: dict[str, Array] = {"past.unit": past.unit, "past.since": past.since}
    arrays["past.known"] = _words(past.known)
    for i, path in enumerate(past.paths):
        sums, own = path.sums, f"past{i}."
        arrays |= {f"{own}{name}": np.asarray(here(getattr(sums, name))) for name in ARRAYS}
        if sums.B is not None:
            arrays[f"{own}B"] = sums.B
        else:
            arrays[f"{own}XX"] = _packed(np.asarray(here(sums.XX)))
        if path.ridge is not None:
            arrays[f"{own}ridge"] = path.ridge
    if found is not None:
        arrays |= {f"found.{name}": getattr(found, name) for name in FOUND}
    return arrays


def past_description(past: Past, found: Solution | None) -> dict[str, Any]:
    """Everything else."""
    paths = [
        {name: getattr(path.sums, name) for name in NUMBERS}
        | {"discount": path.discount, "score": path.score, "rows": path.rows}
        for path in past.paths
    ]
    return {"paths": paths, "final": None if found is None else found.final}


def restored_past(described: Any, arrays: dict[str, Array]) -> tuple[Past, Solution | None]:
    """Back. Whatever is no past leads to an error of some kind."""
    unit, since = arrays["past.unit"], arrays["past.since"]
    if unit.shape != since.shape or unit.ndim != 1:
        raise ValueError("units do not fit the past")
    paths = tuple(
        _path(own, {k.removeprefix(f"past{i}."): a for k, a in arrays.items()}, len(unit))
        for i, own in enumerate(described["paths"])
    )
    known = tuple(map(int, arrays["past.known"]))
    found = None
    if described["final"] is not None:
        known_as = {name: arrays[f"found.{name}"] for name in FOUND}
        found = Solution(**known_as, final=bool(described["final"]))
        p, m = paths[0].sums.XY.shape
        shapes = ((p, m), (m,), (m,), (p, m), (m,))
        if any(known_as[name].shape != shape for name, shape in zip(FOUND, shapes, strict=True)):
            raise ValueError("what was found of the past does not fit it")
    return Past(paths, unit, since, known), found


def _path(described: Any, arrays: dict[str, Array], p: int) -> Path:
    known = {name: arrays[name] for name in ARRAYS}
    m = len(known["YY"])
    if known["XY"].shape != (p, m) or any(known[k].shape != (p + m,) for k in ("origin", "mean")):
        raise ValueError("its past does not fit its columns")
    XX = B = None
    if "B" in arrays:
        B = arrays["B"]
        if B.ndim != 2 or B.shape[1] != p + m:
            raise ValueError("rows of the past do not fit its columns")
    else:
        XX = _unpacked(arrays["XX"], p)
    numbers = {name: float(described[name]) for name in NUMBERS}
    sums = Sums(**numbers, **known, XX=XX, B=B)
    ridge = arrays.get("ridge")
    if ridge is not None and ridge.shape != (m,):
        raise ValueError("the last ridge does not fit the targets")
    rest = float(described["score"]), ridge, float(described["rows"])
    return Path(sums, float(described["discount"]), *rest)


def _packed(XX: Array) -> Array:
    """The lower triangle, column by column."""
    return np.concatenate([XX[j:, j] for j in range(len(XX))])


def _unpacked(triangle: Array, p: int) -> Array:
    if triangle.shape != (p * (p + 1) // 2,):
        raise ValueError("products of the past do not fit its columns")
    XX, first = np.zeros((p, p), order="F"), 0
    for j in range(p):
        XX[j:, j] = triangle[first : first + p - j]
        first += p - j
    return XX


def _words(known: tuple[int, ...]) -> Array:
    return np.array(known, dtype=np.uint64)
