"""``conche reproduce``: the paper's figures, or one of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import ParameterError
from ..options import argument, command, flag, option


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Options of ``conche reproduce``."""

    figures: list[str] | None = argument(
        "fig2 ... fig12, all, or a spec of your own (FILE.toml).", None
    )
    scale: str = option("quick (all in about a minute), or the paper's own sizes: paper.", "quick")
    out: Path = option("Folder for the results.", Path("figures"))
    jobs: int | None = option("Processes; all cores unless given.")
    device: str | None = option("cpu, or cuda: simulate on a GPU.")
    seed: int = option("The same seed gives the same tables.", 0)
    check: bool = flag("--check", "Compare with theory and with the paper's words.")
    data: Path | None = option("Folder with MNIST's idx files, for fig11 and fig12.")
    list_them: bool = flag("--list", "List the figures.")


@command(Reproduce)
def reproduce(options: Reproduce) -> int:
    """Make the paper's figures, theory beside simulation; or answer a question of your own.

    All of them, small:     conche reproduce all --check

    As the paper has them:  conche reproduce all --scale paper --data MNIST_FOLDER --check

    Your own:               conche reproduce my.toml

    Each gets a folder with table.csv, figure.png, figure.svg and manifest.json. Stopped at any
    moment, the same command goes on where it stood. Exit status 1: a check failed.
    """
    import joblib

    from ..console import Console
    from ..reproduce import listing
    from ..reproduce import reproduce as make

    if options.list_them:
        Console().print(listing())
        return 0
    if not options.figures:
        raise ParameterError(
            "which figure? fig2 ... fig12, all, or a .toml file; --list shows them"
        )
    if options.jobs is not None and options.jobs < 1:
        raise ParameterError(f"--jobs {options.jobs} must be at least 1")
    if options.seed < 0:
        raise ParameterError(f"--seed {options.seed} must not be negative")
    cores = joblib.cpu_count()  # more processes than that would only fight
    passed = make(
        options.figures,
        options.scale,
        options.out,
        min(options.jobs or cores, cores),
        options.seed,
        options.check,
        options.data,
        options.device,
    )
    return 0 if passed else 1
