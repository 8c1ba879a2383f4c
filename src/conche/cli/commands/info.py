"""``conche info``: what a model's file holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..options import JSON, WIDE, argument, command, flag


@dataclass(frozen=True, kw_only=True)
class Info:
    """Options of ``conche info``."""

    model: Path = argument("A model that conche train, or conche.save, wrote.")
    json: bool = flag("--json", JSON)
    wide: bool = flag("--wide", WIDE)


@command(Info)
def info(options: Info) -> None:
    """What a model is: its stream, its columns by node, its options, its sizes, its history.

    conche info model.conche
    """
    from ...model_file import load_run
    from ..reports import models, objects

    model, run = load_run(options.model)
    known = models.known_beside(model, run, options.model)
    if options.json:
        objects.print_object(known)
    else:
        models.print_known(known, options.wide)
