"""The command line around the commands: options, exit status, one line for an error, the demo."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import conche
from conche.cli import demo
from conche.cli import run as command_line
from conche.cli.options import argument, command, flag, option
from conche.errors import DivergenceError, NetworkError, NodeError, ParameterError

from .helpers.commands import Done, run, run_here


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == f"conche {conche.__version__}"
    shown = run("--help")
    assert shown.returncode == 0 and "Usage: conche" in shown.stdout and shown.stderr == ""
    for name in ("train", "predict", "evaluate", "plan", "reproduce", "demo", "--debug"):
        assert name in shown.stdout
    bare = run()
    assert bare.returncode == 2 and "Usage: conche" in bare.stdout and bare.stderr == ""


def test_bad_usage_is_exit_status_two_without_a_traceback(tmp_path: Path) -> None:
    done = run("demmo")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stderr.startswith("conche: ")
    assert done.stderr.count("\n") == 1


def ended_with(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[list[str], Done]:
    """What is left of a command that raises this, and the arguments that typer saw."""
    seen: list[str] = []

    def app(arguments: list[str], **options: Any) -> Any:
        seen.extend(arguments)

        def work() -> None:
            raise error

        return work

    monkeypatch.setattr(command_line, "app", app)
    return seen, run_here(*arguments)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ParameterError("rank=-1\nmust not be"), 2, "--rank -1 must not be"),
        (DivergenceError("the rounds overflowed"), 2, "the rounds overflowed"),
        (NetworkError("closed"), 2, "closed"),
        (NodeError("node 1: a.csv: no rows in it"), 2, "node 1: a.csv: no rows in it"),
        (FileNotFoundError(2, "No such file", "a.csv"), 2, "[Errno 2] No such file: 'a.csv'"),
        (MemoryError(), 2, "not enough memory for that"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (typer.BadParameter("not that"), 2, "Invalid value: not that"),
        (ValueError("a shape"), 70, "this is a bug in Conche (ValueError: a shape); --debug shows"),
        (RuntimeError(), 70, "this is a bug in Conche (RuntimeError: ); --debug shows"),
        (AssertionError("never"), 70, "this is a bug in Conche (AssertionError: never)"),
        (EOFError("end"), 70, "this is a bug in Conche (EOFError: end)"),
    ],
)
def test_what_a_user_can_mend_is_status_two_and_a_bug_is_seventy(
    error: BaseException, status: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, done = ended_with(error, monkeypatch, "train")
    assert done.returncode == status
    assert done.stderr.startswith(f"conche: {line}") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("error", [ParameterError("no"), ZeroDivisionError("no")])
def test_debug_shows_the_traceback_wherever_it_stands(
    error: Exception, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["train", "s", "--target", "y"]
    arguments.insert(place, "--debug")
    seen, done = ended_with(error, monkeypatch, *arguments)
    assert seen == ["train", "s", "--target", "y"]
    assert "Traceback" in done.stderr and type(error).__name__ in done.stderr
    assert done.stderr.splitlines()[-1].startswith("conche: ")


@dataclass(frozen=True, kw_only=True)
class Fake:
    """Options of a command that is none of Conche's."""

    name: str = argument("Whom to greet.")
    times: int = option("How often.", 1)
    loudly: bool = flag("--loudly", "At the top of one's voice.")


def test_options_are_one_object() -> None:
    app, seen = typer.Typer(add_completion=False), []

    @app.callback()
    def root() -> None: ...

    @command(Fake, app)
    def greet(options: Fake) -> int:
        """Greet."""
        seen.append(options)
        return 1

    work = app(["greet", "you", "--times", "3"], standalone_mode=False)
    assert seen == []  # the options are parsed, the work is still to be done
    assert work() == 1 and seen == [Fake(name="you", times=3)]
    assert greet(Fake(name="me")) == 1
    with pytest.raises(typer.BadParameter) as caught:
        app(["greet"], standalone_mode=False)
    assert "Missing argument" in caught.value.format_message()


WITHOUT = """
import sys
sys.modules[sys.argv.pop(1)] = None  # as if it were not installed
from conche.cli import main
main()
"""


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_extra_the_command_line_says_what_to_install(package: str) -> None:
    command = [sys.executable, "-c", WITHOUT, package, "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    wanted = f"conche: the command line needs {package}: pip install 'conche[cli]'"
    assert done.stderr.startswith(wanted)


def test_demo_prints_tables_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SEEDS", 1)
    monkeypatch.setattr(demo, "NODES", (1, 4))
    demo.show(tmp_path / "new" / "folder")
    text = capsys.readouterr().out
    assert all(word in text for word in ("Algorithm 1", "Conche", "offline", "forgetting", "8/9"))
    assert (tmp_path / "new" / "folder" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_public_names() -> None:
    assert all(hasattr(conche, name) for name in conche.__all__)
    with pytest.raises(AttributeError):
        _ = conche.nonsense  # type: ignore[attr-defined]  # indeed
