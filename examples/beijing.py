"""
Beijing's air as a stream of files
==================================

Beijing's air as a stream on disk: 12 stations, 48 months, one Parquet file a month::

    python examples/beijing.py --data DIR --out streams/beijing

DIR holds beijing12.npz (UCI Beijing Multi-Site Air Quality; see docs/streams.md). Written are
train/ and test/ with a file a month (a random quarter of every month is held out), and
stations.json, which says that each station is a node. The target is one station's log PM2.5 six
hours ahead, standardised by the first year; missing measurements stay missing.
"""

# sphinx_gallery_thumbnail_path = 'figures/beijing.png'

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SKEWED = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "RAIN", "WSPM")  # logged
FIRST_YEAR = slice(0, 365 * 24)


def write(data: Path, out: Path, hours_ahead: int = 6, station: int = 0, seed: int = 0) -> None:
    """Write train/, test/ and stations.json; the target is ``station``'s, ``hours_ahead``."""
    with np.load(data / "beijing12.npz", allow_pickle=False) as file:
        X, time = file["X"].astype(float), file["time"]
        stations, columns = file["stations"].tolist(), file["columns"].tolist()
    for name in SKEWED:
        j = columns.index(name)
        X[:, :, j] = np.log1p(X[:, :, j])
    target = np.roll(X[:, station, columns.index("PM2.5")], -hours_ahead)
    target[-hours_ahead:] = np.nan
    target = (target - np.nanmean(target[FIRST_YEAR])) / np.nanstd(target[FIRST_YEAR])
    X = (X - np.nanmean(X[FIRST_YEAR], axis=0)) / np.nanstd(X[FIRST_YEAR], axis=0)
    names = [f"{s} {c}" for s in stations for c in columns]
    flat = X.reshape(len(X), -1)
    month = time[:, 0].astype(int) * 12 + time[:, 1].astype(int) - 1
    rng = np.random.default_rng(seed)
    for part in ("train", "test"):
        (out / part).mkdir(parents=True, exist_ok=True)
    for m in np.unique(month):
        rows = rng.permutation(np.flatnonzero((month == m) & np.isfinite(target)))
        held = len(rows) // 4
        for part, chosen in (("test", rows[:held]), ("train", rows[held:])):
            table = {
                name: pa.array(flat[chosen, j], from_pandas=True) for j, name in enumerate(names)
            }
            table["pm25"] = pa.array(target[chosen])
            file = out / part / f"{m // 12}-{m % 12 + 1:02d}.parquet"
            pa.parquet.write_table(pa.table(table), file)
    nodes = {s: [f"{s} {c}" for c in columns] for s in stations}
    (out / "stations.json").write_text(json.dumps(nodes, indent=1))
    print(
        f"{out}: {len(np.unique(month))} months, {len(names)} columns of {len(stations)} stations"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--data", type=Path, required=True, help="folder with beijing12.npz")
    parser.add_argument("--out", type=Path, default=Path("streams/beijing"))
    options = parser.parse_args()
    write(options.data, options.out)
