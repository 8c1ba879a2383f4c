"""The numbers of the figures of theory, with the points that were simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..common.threads import blas_threads
from ..errors import ParameterError
from ..planner.advice import candidate_nodes
from . import answers
from .settings import Setting, Wish
from .tables import Table, of_columns
from .worker import possible, simulated

Found = Mapping[int, Mapping[str, Any]]  # what was simulated, by the number of nodes
FIGURES = ("error-over-nodes", "error-over-tasks", "learning-curves")


def theory_table(
    figure: str, setting: Setting, nodes: Sequence[int] = (), wish: Wish | None = None
) -> Table:
    """A figure of theory, with the points that ``wish`` asks for: the page's numbers, because they
    come from the same functions with the same draws."""
    over_nodes = figure == "error-over-nodes"
    if over_nodes and wish is not None:
        _check_places(wish)
    found = {} if wish is None else _simulated(wish)
    if over_nodes:
        return _over_nodes(setting, found)
    if figure == "error-over-tasks":
        return _over_tasks(setting, nodes, found)
    if not found:
        raise ParameterError(f"--csv {figure} is simulated: give --simulate, as in --simulate 1,8")
    return _by_round(setting, found)


def _check_places(wish: Wish) -> None:
    """Points over nodes are rows of the curve."""
    known = candidate_nodes(wish.setting.n_features)
    for K in wish.nodes:
        if K not in known:
            few = ", ".join(map(str, known[:8])) + (", ..." if len(known) > 8 else "")
            raise ParameterError(f"--simulate {K}: the curve is known at {few} nodes")


def _simulated(wish: Wish) -> Found:
    """What the page shows in the end."""
    left_out = possible(wish)[1]
    if left_out:
        listed = ", ".join(map(str, left_out))
        raise ParameterError(f"--simulate: too large to be simulated here: {listed} nodes")
    found: dict[int, Mapping[str, Any]] = {}
    with blas_threads(1):  # as the page's own process has it
        for line in simulated(wish):
            found |= {result["n_nodes"]: result for result in line["results"]}
    return found


def _over_nodes(setting: Setting, found: Found) -> Table:
    curve, conche = answers.curve_answer(setting), answers.advice_answer(setting)["conche"]
    more = answers.rounds_answer(setting) if setting.n_rounds > 1 else {"nodes": [], "errors": []}
    several = dict(zip(more["nodes"], more["errors"], strict=True))
    columns = ["nodes", "algorithm_1", "several_rounds", "conche", "offline", "spectral_radius"]
    parts = (curve[name] for name in ("nodes", "errors", "radii", "warnings"))
    rows = []
    for K, error, radius, warning in zip(*parts, strict=True):
        row = [K, error, several.get(K), conche, curve["offline"], radius, warning]
        point = [found[K][key][-1] for key in ("mean", "stderr")] if K in found else [None, None]
        rows.append(row + point)
    return Table([*columns, "warning", "simulated", "stderr"], rows)


def _over_tasks(setting: Setting, nodes: Sequence[int], found: Found) -> Table:
    known = answers.tasks_answer(setting, list(nodes))
    named = {"task": known["tasks"]}
    for curve in known["curves"]:
        named[f"Algorithm 1, K = {curve['n_nodes']:,}"] = curve["errors"]
    named |= {"Conche method": known["conche"], "Offline, all tasks so far": known["offline"]}
    named |= {f"simulated, K = {K:,}": found[K]["mean"] for K in found}
    named |= {f"stderr, K = {K:,}": found[K]["stderr"] for K in found}
    return of_columns(named)


def _by_round(setting: Setting, found: Found) -> Table:
    steps = range(setting.n_tasks * setting.n_rounds)
    named: dict[str, Any] = {
        "task": [i // setting.n_rounds + 1 for i in steps],
        "round": [i % setting.n_rounds + 1 for i in steps],
    }
    for K, each in found.items():
        named |= {f"K = {K:,}": each["mean"], f"stderr, K = {K:,}": each["stderr"]}
    return of_columns(named)
