"""``conche explore``: a page to look at theory and models, on this machine alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...errors import ParameterError
from ..options import argument, command, flag, option

if TYPE_CHECKING:
    from ...explore.settings import Wish
    from ...explore.shown import Loading
    from ...explore.tables import Table

STREAM = {  # options and what the page's address calls them
    "features": "p",
    "samples": "n",
    "tasks": "T",
    "shared": "shared",
    "noise": "noise",
    "rounds": "rounds",
}
LONG = {"p": "n_features", "n": "n_samples", "T": "n_tasks"}
SHORT = re.compile(r"\b([pnT])=")
SIMULATED = ("simulate", "trials", "seed")


@dataclass(frozen=True, kw_only=True)
class Explore:
    """Options of ``conche explore``."""

    place: str | None = argument(
        "A model, a checkpoint's folder, or a stream (folder or glob) to learn.", None
    )
    stream: str | None = option("With a model: tasks to test it on, for the error matrix.")
    target: str | None = option("The target's column, in a stream.")
    nodes: str | None = option(
        "With a stream: nodes to learn it on; 4 unless given. With --csv error-over-tasks: 1,8,64."
    )
    port: int | None = option("Listen on this port; 8417, or a free one, unless given.")
    no_browser: bool = flag("--no-browser", "Print the address, and open nothing.")
    csv: str | None = option("Open nothing: print the numbers of this figure of the page as CSV.")
    features: int | None = option("Theory: columns in all (p); 1024 unless given.")
    samples: int | None = option("Theory: samples of a task (n_t); 2048 unless given.")
    tasks: int | None = option("Theory: number of tasks (T); 16 unless given.")
    shared: float | None = option("Theory: unknowns in common (p_S); 768 unless given.")
    noise: float | None = option("Theory: noise variance (sigma^2); 0.01 unless given.")
    rounds: int | None = option("Theory: rounds a task (T_c); 1 unless given.")
    simulate: str | None = option("With --csv: simulate these numbers of nodes, as in 1,8,64.")
    trials: int | None = option("With --simulate: trials; 50 unless given.")
    seed: int | None = option("With --simulate: 0 unless given.")


@command(Explore)
def explore(options: Explore) -> None:
    """See it: errors over nodes and tasks with sliders, and what is in a model.

    conche explore model.conche --stream months/

    The page is on this machine alone: loopback, with a token in the address that is printed, and
    nothing is fetched from outside. Ctrl-C ends it. Every figure shows the --csv command that
    prints its numbers.
    """
    _check(options)
    if options.csv is not None:
        print(_csv(options, options.csv), end="")
        return
    from ...explore.serve import serve
    from ...explore.shown import Shown

    if options.place is None:
        asked = urlencode(_asked(options))
        shown, path = Shown(), f"&{asked}" if asked else ""
    else:
        shown, path = Shown(_loading(options, options.place)), "&view=model"
    serve(shown, options.port, not options.no_browser, _say, path)


def _check(options: Explore) -> None:
    """Options that are of no use together."""
    given = {name for name, value in vars(options).items() if value is not None}
    refused = (
        (options.place is None, ("stream", "target"), "needs a model or a stream to explore"),
        (
            options.place is None and options.csv != "error-over-tasks",
            ("nodes",),
            "needs a stream to explore, or --csv error-over-tasks",
        ),
        (options.place is not None, (*STREAM, *SIMULATED), "is for theory: leave PLACE out"),
        (options.csv is None, SIMULATED, "needs --csv"),
        (options.simulate is None, ("trials", "seed"), "needs --simulate"),
        (options.csv is not None, ("port",), "is of no use with --csv, which opens nothing"),
    )
    for wrong, names, why in refused:
        for name in names:
            if wrong and name in given:
                raise ParameterError(f"--{name} {why}")


def _asked(options: Explore) -> dict[str, Any]:
    """The stream that is asked about, as far as it was said, by the names of the address."""
    given = {short: getattr(options, name) for name, short in STREAM.items()}
    return {short: value for short, value in given.items() if value is not None}


def _csv(options: Explore, figure: str) -> str:
    """The numbers of one figure, as the page saves them."""
    from ...explore.tables import Table, csv_text
    from ..reports.outputs import waiting

    with waiting("computing"):
        if options.place is None:
            return csv_text(*_of_theory(options, figure))
        figures = _loading(options, options.place)()["figures"]
    if figure not in figures:
        raise ParameterError(f"--csv {figure}: of this there are {', '.join(figures)}")
    found = figures[figure]
    return csv_text(Table(found["columns"], found["rows"]), found["command"])


def _of_theory(options: Explore, figure: str) -> tuple[Table, str]:
    """A table of theory, and the command that prints it."""
    from ...explore.settings import Setting, curves_of
    from ...explore.theory_tables import FIGURES, theory_table

    if figure not in FIGURES:
        raise ParameterError(f"--csv {figure}: without a model there are {', '.join(FIGURES)}")
    try:
        setting = Setting.read(_asked(options))
        over_tasks = figure == "error-over-tasks"
        curves = curves_of(options.nodes or "1,8,64", setting) if over_tasks else []
        wish = None if options.simulate is None else _wish(options, figure, options.simulate)
        simulated = "" if wish is None else wish.csv_options()
        table = theory_table(figure, setting, curves, wish)
        return table, setting.csv_command(figure, curves) + simulated
    except ParameterError as error:  # the page's p=0 is --features 0 here
        said = SHORT.sub(lambda found: f"{LONG[found[1]]}=", str(error))
        raise ParameterError(said) from None


def _wish(options: Explore, figure: str, simulate: str) -> Wish:
    """The simulation that is asked for."""
    from ...explore.settings import MOST_POINTS, Wish, nodes_listed

    own = {"trials": options.trials, "seed": options.seed}
    given = {name: value for name, value in own.items() if value is not None}
    kind = "rounds" if figure == "learning-curves" else "points"
    nodes = nodes_listed(simulate, MOST_POINTS)
    return Wish.read({**_asked(options), **given, "kind": kind, "nodes": nodes})


def _loading(options: Explore, place: str) -> Loading:
    from ...explore import places
    from ..record import seconds_of

    file = places.model_in(place)
    if file is None:
        if options.stream is not None:
            raise ParameterError(f"{place} is a stream already: leave --stream out")
        return places.of_stream(place, options.target, _nodes(options.nodes))
    if options.nodes is not None:
        raise ParameterError("--nodes is for a stream: a model has its own")
    return places.of_model(place, file, options.stream, options.target, seconds_of(file))


def _nodes(text: str | None) -> int | None:
    """The number of nodes that a stream is learnt on."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise ParameterError(f"--nodes {text}: a stream is learnt on one number of nodes")
    return int(text[:20])


def _say(address: str) -> None:
    print(f"conche explore: {address}\nCtrl-C ends it.", flush=True)
