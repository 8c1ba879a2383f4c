"""A node leaves: its columns are dropped, and the others make up for them as far as they can.

Memory knows the curvature between the columns that go and those that stay. So the estimate moves to
the best one without the columns: the offline solution on the data without them, where nothing is
lost. In units of the ridge, with u the weights, H the past and s the ridge's strength,

    u_stay += (H_stay + s)^-1 H_stay,go u_go.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from scipy import linalg

from ..common.arrays import Array
from ..errors import ParameterError
from ..memory import Past as Kept
from ..memory import Solution, gap, solve
from ..network.base import coefficients, share
from ..nodes import NodeState, Partition, Setup
from ..nodes.layout import Layout
from ..nodes.solvers.base import Meeting
from ..nodes.solvers.candidates import CandidateSolver
from ..nodes.solvers.information import Information
from ..nodes.solvers.past import Past
from ..nodes.solvers.pooled import PooledMemory
from .state import StreamState


class Departure(NamedTuple):
    """``rise`` is what the offline objective has risen by, ``share`` the same as a share of it; NaN
    where the solver keeps no past to tell."""

    rise: float
    share: float


def check_departure(state: StreamState, node: int) -> None:
    """Refuse where there is no such node, or it cannot go."""
    partition = state.setup.partition
    if state.setup.homes:
        raise ParameterError("keep_weights = 'nodes': a node that leaves takes its weights along")
    if isinstance(node, bool) or not isinstance(node, int | np.integer):
        raise ParameterError(f"node={node!r} must be the number of a node")
    if not 0 <= node < len(partition):
        raise ParameterError(f"node={node}: there are nodes 0 to {len(partition) - 1}")
    if len(partition) == 1:
        raise ParameterError("the only node cannot leave")
    if partition.intercept and node == 0:
        raise ParameterError("node 0 holds the intercept, and cannot leave")


def without_node(
    state: StreamState, states: list[NodeState], node: int
) -> tuple[StreamState, Departure]:
    """The stream without one of its nodes; ``states`` are all nodes', as they were fetched."""
    old = state.setup
    blocks = [block for k, block in enumerate(old.partition) if k != node]
    stays = np.sort(np.concatenate(blocks))
    places = [np.searchsorted(stays, block) for block in blocks]
    setup = replace(old, partition=Partition(places, len(stays), old.partition.intercept))
    past = found = None
    if state.past is not None:
        past, states, found, rise = _from_sums(state, states, node, stays)
    else:
        states, rise = _compensated(state, states, node)
    names = state.schema.names
    schema = replace(
        state.schema,
        n_features=len(stays),
        names=None if names is None else tuple(names[j] for j in stays),
    )
    nowhere = np.zeros(states[0].weights.shape[1])
    shares = [share(setup.scaling, own, nowhere) for own in states[: len(blocks)]]
    account = state.account
    if account is not None:
        # Of principal directions the probes know H o, columns that went included: no bound is left.
        unknown = account.blind or old.solver.meeting in (Meeting.CENTRE, Meeting.PRINCIPAL)
        account = replace(account, objective=account.objective + rise, blind=unknown)
    told = coefficients(setup, shares)
    if found is not None:
        told = told._replace(offset=told.offset + found.offset)
    new = replace(
        state,
        account=account,
        past=past,
        found=found,
        setup=setup,
        schema=schema,
        nodes=states,
        coefficients=told,
        moved=True,
    )
    if state.past is not None:
        whole, lost = state.gap().objective, float(rise[0])
        return new, Departure(lost, lost / whole if whole > 0 else np.nan)
    whole = np.nan if state.account is None else float(state.account.objective[new.counted].sum())
    lost = float(rise[new.counted].sum())
    return new, Departure(lost, lost / whole if whole > 0 else np.nan)


def _from_sums(
    state: StreamState, states: list[NodeState], node: int, stays: Array
) -> tuple[Kept, list[NodeState], Solution | None, Array]:
    """Sums of the columns that stay: the model is as if the others had never been there. What the
    objective rises by is told for the ridge that was in force."""
    assert state.past is not None
    past, left = state.past, [own for k, own in enumerate(states) if k != node]
    if state.turned:  # columns were turned together: back to those that stay, and turned anew
        past, left = _turned_back(state, states, left, stays)
    else:
        past = past.of_columns(stays)
    now = replace(state, past=past)
    before, wish = state.solved, replace(now.wish, unit=None) if not state.turned else now.wish
    if wish.ridge is None:
        same = solve(past.best.sums, wish, before.ridge, keep=True)
    else:
        same = solve(past.best.sums, now.wish)
    about_zero, eps = not state.settings.fit_intercept, float(np.finfo(float).eps)
    risen = (
        gap(past.best.sums, same, about_zero, eps)[0]
        - gap(state.past.best.sums, before, about_zero, eps)[0]
    )
    if not state.turned:
        return past, left, None, np.array([risen])
    found, path = past.solved(past.best, now.wish)
    left = [
        replace(own, weights=own.kept["rotation"] @ found.weights / own.kept["unit"][:, None])
        for own in left
    ]
    return past.with_path(path), left, found, np.array([risen])


def _turned_back(
    state: StreamState, states: list[NodeState], left: list[NodeState], stays: Array
) -> tuple[Kept, list[NodeState]]:
    """The past in other coordinates, of the columns that stay."""
    assert state.past is not None
    rows = [own.kept["rotation"] for own in left]
    T = np.concatenate(rows).T  # from coordinates to columns, node by node
    Q, R = np.linalg.qr(np.random.default_rng().standard_normal((len(stays), len(stays))))
    Q = Q * np.sign(np.diag(R))
    ends = np.cumsum([0, *map(len, rows)])
    turned = [
        replace(own, kept={**own.kept, "rotation": Q[first:last]})
        for own, (first, last) in zip(left, pairwise(ends), strict=True)
    ]
    past = state.past.of_columns(stays)  # as many coordinates as there are columns
    changed = state.past.changed(lambda sums: sums.turned(T @ Q))
    return replace(past, paths=changed.paths), turned


def _compensated(
    state: StreamState, states: list[NodeState], node: int
) -> tuple[list[NodeState], Array]:
    """The other nodes' states, and what the objective rises by, per output."""
    solver, K = state.setup.solver, len(state.setup.partition)
    strength = np.repeat(state.judge.strengths, state.judge.n_outputs)
    if not solver.remembers:
        return states[:node] + states[node + 1 :], np.full(len(strength), np.nan)
    if solver.meeting is Meeting.POOL:
        return _from_pool(state.setup, states, node, strength)
    if solver.meeting is Meeting.CANDIDATES:
        return _from_rows(state, states, node)
    return _from_directions(states[:K], node, strength)


def _from_pool(
    setup: Setup, states: list[NodeState], node: int, strength: Array
) -> tuple[list[NodeState], Array]:
    """The coordinator knows all of H, in its own coordinates."""
    *nodes, centre = states
    ends = np.cumsum([0, *setup.partition.weight_counts()])
    goes = np.arange(ends[node], ends[node + 1])
    stays = np.setdiff1d(np.arange(ends[-1]), goes)
    known = Information.known(centre.kept)
    assert known is not None
    H, u = (known.matrix.T @ known.matrix if known.is_root else known.matrix), centre.weights
    moved = np.array(u)
    rise = np.zeros(len(strength))
    for s in np.unique(strength):
        own = np.flatnonzero(strength == s)
        gone = u[np.ix_(goes, own)]
        pulled = H[np.ix_(stays, goes)] @ gone
        M = H[np.ix_(stays, stays)] + s * np.eye(len(stays))
        step = linalg.solve(M, pulled, assume_a="pos")
        moved[np.ix_(stays, own)] += step
        kept = H[np.ix_(goes, goes)] @ gone + s * gone
        rise[own] = 0.5 * (np.sum(gone * kept, axis=0) - np.sum(pulled * step, axis=0))
    others = []
    for k, state in enumerate(nodes):
        if k == node:
            continue
        rows = slice(ends[k], ends[k + 1])
        change = moved[rows] - u[rows]
        turned = state.kept["rotation"] @ change if "rotation" in state.kept else change
        weights = state.weights + turned / np.sqrt(state.kept["ridge"])[:, None]
        others.append(replace(state, weights=weights))
    solver = cast(PooledMemory, setup.solver).coordinator()
    centre = replace(centre, weights=moved).laid_out(solver, Layout.of(stays), False)
    return [*others, centre], rise


def _from_rows(
    state: StreamState, states: list[NodeState], node: int
) -> tuple[list[NodeState], Array]:
    """An elastic net's coordinator has rows of the past: it is solved without the columns."""
    setup, (*nodes, centre) = state.setup, states
    solver = cast(CandidateSolver, setup.solver)
    ends = np.cumsum([0, *setup.partition.weight_counts()])
    stays = np.concatenate([np.arange(ends[node]), np.arange(ends[node + 1], ends[-1])])
    past, w = Past.known(centre.kept, centre.weights.shape[1]), np.array(centre.weights)
    count, largest = (float(centre.kept[name][0]) for name in ("count", "largest"))
    penalty = solver.penalty(count, largest, state.judge.strengths, w.shape[1])
    free = ends[1] - 1 if setup.partition.intercept else None
    before = past.objective(w, penalty, free)
    w[ends[node] : ends[node + 1]] = 0.0
    w = past.solved(w, np.isin(past.among, stays), penalty, free)
    rise = past.objective(w, penalty, free) - before
    pairs = zip(nodes, pairwise(ends), strict=True)
    moved = [replace(own, weights=w[first:last]) for own, (first, last) in pairs]
    centre = replace(centre, weights=w).laid_out(solver.coordinator(), Layout.of(stays), False)
    return [*moved[:node], *moved[node + 1 :], centre], rise


def _from_directions(
    states: list[NodeState], node: int, strength: Array
) -> tuple[list[NodeState], Array]:
    """Between nodes, H is what the principal directions know: V_stay^T V_go."""
    gone = states[node]
    u = np.sqrt(gone.kept["ridge"])[:, None] * gone.weights
    image = _directions(gone) @ u
    others = [state for k, state in enumerate(states) if k != node]
    new = [np.array(state.weights) for state in others]
    rise = np.zeros(len(strength))
    for s in np.unique(strength):
        own = np.flatnonzero(strength == s)
        # (V^T V + D)^-1 V^T x = D^-1 V^T (I + V D^-1 V^T)^-1 x, D block by block
        solved = [_by_block(state, s, _directions(state).T) for state in others]
        small = np.eye(len(image))
        for state, DV in zip(others, solved, strict=True):
            small = small + _directions(state) @ DV
        inner = linalg.solve(small, image[:, own], assume_a="pos")
        for weights, state, DV in zip(new, others, solved, strict=True):
            weights[:, own] += (DV @ inner) / np.sqrt(state.kept["ridge"])[:, None]
        kept = np.sum(u[:, own] * (_block_times(gone, u[:, own]) + s * u[:, own]), axis=0)
        rise[own] = 0.5 * (kept + np.sum(image[:, own] * inner, axis=0))
    pairs = zip(others, new, strict=True)
    return [replace(state, weights=weights) for state, weights in pairs], rise


def _directions(state: NodeState) -> Array:
    return state.kept.get("principal", np.zeros((0, len(state.weights))))


def _block_times(state: NodeState, x: Array) -> Array:
    """E_k x."""
    E = state.kept.get("remainder")
    if E is None:
        return np.zeros_like(x)
    return np.asarray(E[:, None] * x if E.ndim == 1 else E @ x)


def _by_block(state: NodeState, s: float, x: Array) -> Array:
    """(E_k + s)^-1 x."""
    E = state.kept.get("remainder")
    if E is None:
        return x / s
    if E.ndim == 1:
        return np.asarray(x / (E + s)[:, None])
    return np.asarray(linalg.solve(E + s * np.eye(len(E)), x, assume_a="pos"))
