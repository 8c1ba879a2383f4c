"""What a hospital and a laboratory have of the same patients: python write_data.py FOLDER

FOLDER/hospital has outcomes and vitals, FOLDER/laboratory has bloods: a CSV file a month each,
every file in an order of its own. The laboratory lacks some of the patients, and knows others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")


def write(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for m, month in enumerate(MONTHS):
        n = 220  # of whom the hospital has 200
        patients = np.array([f"P{1000 * m + i}" for i in range(n)])
        age, pressure, pulse = rng.normal([60, 130, 75], [12, 15, 9], (n, 3)).T
        sodium, crp, cells = rng.normal([140, 8, 7], [3, 4, 2], (n, 3)).T
        risk = 0.03 * age + 0.01 * pressure + 0.2 * crp - 0.1 * sodium + rng.normal(0, 0.3, n)
        own = {
            "hospital/outcomes": {"risk": risk},
            "hospital/vitals": {"age": age, "pressure": pressure, "pulse": pulse},
            "laboratory/bloods": {"sodium": sodium, "crp": crp, "cells": cells},
        }
        there = rng.random(n) > 0.05
        for name, columns in own.items():
            rows = np.flatnonzero(there) if name.startswith("laboratory") else np.arange(200)
            rows = rng.permutation(rows)
            lines = [",".join(["patient", *columns])]
            for i in rows:
                values = ",".join(f"{column[i]:.4f}" for column in columns.values())
                lines.append(f"{patients[i]},{values}")
            file = folder / name / f"{month}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
