"""What a page asks for, read from texts that anybody may have written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.checks import real, whole
from ..errors import ParameterError

MOST_FEATURES, MOST_SAMPLES, MOST_TASKS, MOST_ROUNDS = 10**9, 10**7, 2000, 64
MOST_NODES = 1 << 16
MOST_CURVES = 8  # numbers of nodes in one picture
MOST_TRIALS = 2000
MOST_POINTS = 16  # numbers of nodes in one simulation


@dataclass(frozen=True)
class Setting:
    """A stream of the paper's model, as the sliders have it."""

    n_features: int
    n_samples: int
    n_tasks: int
    n_shared: float
    noise_var: float
    n_rounds: int = 1

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Setting:
        """From p, n, T, shared, noise and rounds; what is missing has the paper's value."""
        p = _whole(given, "p", 1024, 1, MOST_FEATURES)
        return cls(
            p,
            _whole(given, "n", 2048, 1, MOST_SAMPLES),
            _whole(given, "T", 16, 1, MOST_TASKS),
            real("shared", _number(given, "shared", min(768, p)), 0, p),
            real("noise", _number(given, "noise", 0.01), 0, 1e6),
            _whole(given, "rounds", 1, 1, MOST_ROUNDS),
        )

    def plan_command(self) -> str:
        """What prints the advice."""
        return f"conche plan {self._options()}"

    def csv_command(self, figure: str, nodes: Sequence[int] = ()) -> str:
        """What prints the numbers of a figure of theory, with curves for these numbers of nodes."""
        rounds = f" --rounds {self.n_rounds}" if self.n_rounds > 1 else ""
        curves = f" --nodes {','.join(map(str, nodes))}" if nodes else ""
        return f"conche explore --csv {figure} {self._options()}{rounds}{curves}"

    def _options(self) -> str:
        return (
            f"--features {self.n_features} --samples {self.n_samples} --tasks {self.n_tasks} "
            f"--shared {_exactly(self.n_shared)} --noise {_exactly(self.noise_var)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """By the names that `read` takes."""
        return {
            "p": self.n_features,
            "n": self.n_samples,
            "T": self.n_tasks,
            "shared": self.n_shared,
            "noise": self.noise_var,
            "rounds": self.n_rounds,
        }


@dataclass(frozen=True)
class Wish:
    """A simulation that is asked for: of points over nodes, or of curves over rounds."""

    setting: Setting
    kind: str
    nodes: list[int]
    trials: int
    seed: int

    @classmethod
    def read(cls, given: Any) -> Wish:
        """From a JSON object."""
        if not isinstance(given, dict):
            raise ParameterError("a simulation is asked for with a JSON object")
        setting = Setting.read(given)
        kind = given.get("kind", "points")
        if kind not in ("points", "rounds"):
            raise ParameterError("kind must be points or rounds")
        listed = given.get("nodes")
        if not isinstance(listed, list) or not 0 < len(listed) <= MOST_POINTS:
            raise ParameterError(f"nodes must list 1 to {MOST_POINTS} numbers of nodes")
        most = min(MOST_NODES, setting.n_features)
        nodes = [whole("nodes", _plain(K, "nodes"), 1, most) for K in listed]
        if setting.n_shared != int(setting.n_shared):
            raise ParameterError("shared must be a whole number to be simulated")
        trials = _whole(given, "trials", 50, 2, MOST_TRIALS)
        return cls(setting, kind, sorted(set(nodes)), trials, _whole(given, "seed", 0, 0, 2**31))

    def as_dict(self) -> dict[str, Any]:
        """By the names that `read` takes."""
        own = {"kind": self.kind, "nodes": self.nodes, "trials": self.trials, "seed": self.seed}
        return self.setting.as_dict() | own

    def csv_options(self) -> str:
        """What `Setting.csv_command` needs beside it."""
        nodes = ",".join(map(str, self.nodes))
        return f" --simulate {nodes} --trials {self.trials} --seed {self.seed}"


def nodes_listed(text: str, most: int = MOST_CURVES) -> list[int]:
    """At most so many numbers of nodes, between commas."""
    parts = [part for part in text.split(",") if part.strip()]
    if not 0 < len(parts) <= most:
        raise ParameterError(f"nodes: give 1 to {most} numbers, with commas between them")
    return sorted({whole("nodes", _plain(part, "nodes"), 1, MOST_NODES) for part in parts})


def curves_of(text: str, setting: Setting) -> list[int]:
    """Numbers of nodes to draw curves for. More than there are columns are left out, because p may
    move while they stay."""
    return [K for K in nodes_listed(text) if setting.n_features >= K] or [1]


def _exactly(value: float) -> str:
    """All digits that it takes to have the same number again."""
    return repr(int(value)) if value == int(value) else repr(value)


def _whole(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    return whole(name, _plain(given.get(name, default), name), least, most)


def _number(given: Mapping[str, Any], name: str, default: float) -> float:
    return _plain(given.get(name, default), name)


def _plain(value: Any, name: str) -> Any:
    """A number, from one or from its text; whole ones as such."""
    if isinstance(value, str) and len(value) <= 40:
        try:
            value = float(value)
        except ValueError:
            raise ParameterError(f"{name}={value!r} must be a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{name} must be a number")
    if not math.isfinite(value):
        raise ParameterError(f"{name} must be a finite number")
    return int(value) if value == int(value) else value
