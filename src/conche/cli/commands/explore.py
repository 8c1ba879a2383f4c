"""``conche explore``: a page to look at theory and models, on this machine alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import ParameterError
from ..options import argument, command, flag, option

if TYPE_CHECKING:
    from ...explore.shown import Loading


@dataclass(frozen=True, kw_only=True)
class Explore:
    """Options of ``conche explore``."""

    place: str | None = argument(
        "A model, a checkpoint's folder, or a stream (folder or glob) to learn.", None
    )
    stream: str | None = option("With a model: tasks to test it on, for the error matrix.")
    target: str | None = option("The target's column, in a stream.")
    nodes: int | None = option("With a stream: nodes to learn it on; 4 unless given.")
    port: int | None = option("Listen on this port; 8417, or a free one, unless given.")
    no_browser: bool = flag("--no-browser", "Print the address, and open nothing.")


@command(Explore)
def explore(options: Explore) -> None:
    """See it: errors over nodes and tasks with sliders, and what is in a model.

    conche explore model.conche --stream months/

    The page is on this machine alone: loopback, with a token in the address that is printed, and
    nothing is fetched from outside. Ctrl-C ends it.
    """
    from ...explore.serve import serve
    from ...explore.shown import Shown

    if options.place is None:
        for name in ("stream", "target", "nodes"):
            if getattr(options, name) is not None:
                raise ParameterError(f"--{name} needs a model or a stream to explore")
        shown, path = Shown(), ""
    else:
        shown, path = Shown(_loading(options, options.place)), "&view=model"
    serve(shown, options.port, not options.no_browser, _say, path)


def _loading(options: Explore, place: str) -> Loading:
    from ...explore import places
    from ..record import seconds_of

    file = places.model_in(place)
    if file is None:
        if options.stream is not None:
            raise ParameterError(f"{place} is a stream already: leave --stream out")
        return places.of_stream(place, options.target, options.nodes)
    if options.nodes is not None:
        raise ParameterError("--nodes is for a stream: a model has its own")
    return places.of_model(file, options.stream, options.target, seconds_of(file))


def _say(address: str) -> None:
    print(f"conche explore: {address}\nCtrl-C ends it.", flush=True)
