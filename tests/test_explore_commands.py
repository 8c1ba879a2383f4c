"""The command under every figure: whoever runs it gets the figure's numbers, to the last digit."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed (conche[explore])")

import conche
from conche.explore.settings import Setting, Wish
from conche.explore.tables import Table, csv_text
from conche.explore.worker import simulated

from .helpers.browser import browsing, page_of
from .helpers.commands import run_here
from .helpers.explored import explored, months

SMALL = "&p=24&n=40&T=4&shared=12&noise=0.1"
THEORY = {
    "one round": SMALL,
    "digits": "&p=24&n=40&T=4&shared=12.5&noise=0.12345678901234567",
    "unbounded": "&p=40&n=20&T=4&shared=20",
    "unbounded offline": "&p=32&n=8&T=4&shared=20",
    "almost nothing": "&p=1&n=1&T=1&shared=1",
    "wide": "&p=5000&n=20&T=4&shared=3000&rounds=2",
    "rounds, points": f"{SMALL}&rounds=3&trials=10&seed=7&sim=points",
    "wide, points": "&p=400&n=20&T=3&shared=300&trials=10&sim=points",
    "tasks": f"{SMALL}&view=tasks&k=1,5",
    "tasks, rounds, points": f"{SMALL}&view=tasks&k=1,4&rounds=3&trials=10&sim=points",
    "tasks, many nodes": "&p=4000&n=40&T=3&shared=12&view=tasks&k=2,2000&trials=10&sim=points",
    "by round": f"{SMALL}&view=tasks&k=1,4&rounds=3&trials=10&seed=3&sim=rounds",
}


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with browsing() as browser, page_of(browser) as page:
        yield page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream and models of it, one of them with a name that a shell would stumble over."""
    folder = tmp_path_factory.mktemp("a folder")
    stream = months(folder / "months")
    train = ("train", stream, "--target", "y", "--nodes", 2, "--quiet", "--out")
    assert run_here(*train, folder / "m.conche").returncode == 0
    rounds = ("--solver", "damped", "--rounds", 3)
    assert run_here(*train, folder / "it's $(here); é.conche", *rounds).returncode == 0
    return folder


def open_page(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".figure svg .line, .cards", state="attached")
    if "sim=" in address:
        page.wait_for_selector(".simulation .note:text-matches('^done')")
    if "view" not in address:  # the Conche method comes with the advice
        page.wait_for_selector(".series.s1:not(.stale) .line", state="attached")
    if "view" not in address and "rounds=" in address:
        page.wait_for_selector(".series.s5 .line", state="attached")


def figures(page: Any) -> dict[str, str]:
    """What the page saves as CSV, by the command that is shown under the figure."""
    found = {}
    for each in page.locator(".figure:not(.empty)").all():
        command = each.locator(".command code").text_content()
        with page.expect_download() as waiting:
            each.get_by_role("button", name="Save as CSV").click()
        found[command] = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert found[command].startswith(f"# {command}\n")
    return found


def printed(command: str) -> str:
    """What the command prints for somebody who has copied it into a shell."""
    program, *arguments = shlex.split(command)
    done = run_here(*arguments)
    assert (program, done.returncode, done.stderr) == ("conche", 0, "")
    return done.stdout


def values(text: str, but_for: str | None = None) -> list[list[str | float]]:
    """The table, with numbers as such."""
    rows = list(csv.reader(text.splitlines()[1:]))
    kept = [i for i, name in enumerate(rows[0]) if name != but_for]
    return [[_value(row[i]) for i in kept] for row in rows]


def _value(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell


def compare(page: Any, but_for: str | None = None) -> list[str]:
    """Every figure of the page with what its command prints (``but_for`` one column); answers with
    the commands."""
    found = figures(page)
    for command, saved in found.items():
        assert values(printed(command), but_for) == values(saved, but_for), command
    return list(found)


@pytest.mark.parametrize("name", THEORY)
def test_figures_of_theory(page: Any, name: str) -> None:
    with explored() as server:
        open_page(page, server.address + THEORY[name])
        commands = compare(page)
        assert len(commands) == (2 if "sim=rounds" in THEORY[name] else 1)
        assert ("--simulate" in commands[-1]) == ("sim=" in THEORY[name])


def test_points_of_a_simulation_that_was_stopped(page: Any) -> None:
    with explored() as server:
        open_page(page, f"{server.address}&p=300&n=150&T=40&shared=100")
        page.get_by_label("trials").select_option("1000")
        page.get_by_role("button", name="Simulate points").click()
        page.wait_for_selector(".series.s3 .mark")
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".simulation .note:text-matches('^stopped')")
        (command,) = compare(page)
    assert "--trials 1000" not in command


def test_figures_of_a_model(page: Any, folder: Path) -> None:
    with explored(folder / "m.conche", "--stream", folder / "months") as server:
        open_page(page, server.address)
        assert len(compare(page)) == 6  # matrix, forgetting, average, tasks, spectrum, costs


def test_figures_of_a_model_with_an_awkward_name(page: Any, folder: Path) -> None:
    with explored(folder / "it's $(here); é.conche") as server:
        open_page(page, server.address)
        commands = compare(page)
        assert any(command.endswith("--csv rounds") for command in commands)
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Save as PNG").first.click()
        comment = f"iTXtComment\0\0\0\0\0{commands[0]}".encode()
        assert comment in Path(waiting.value.path()).read_bytes()


def test_figures_of_a_stream(page: Any, folder: Path) -> None:
    with explored(folder / "months", "--target", "y", "--nodes", 3) as server:
        open_page(page, server.address)
        assert len(compare(page, but_for="seconds")) == 6  # it is learnt again, and timed again


def test_figures_of_a_model_that_was_dropped_in(
    page: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is not known to the page: the command is for who stands in it."""
    with explored() as server:
        page.goto(f"{server.address}&view=model")
        page.set_input_files("#file", folder / "it's $(here); é.conche")
        page.wait_for_selector(".cards")
        monkeypatch.chdir(folder)
        assert len(compare(page, but_for="seconds")) == 3  # which are in a file beside it


def test_weights_at_home(page: Any, tmp_path: Path) -> None:
    """The nodes are asked, and nothing says where their weights are."""
    rng = np.random.default_rng(0)
    for task in ("jan", "feb"):
        for name in ("target", "north", "south"):
            lines = [f"{row},{value:.5f}" for row, value in enumerate(rng.standard_normal(30))]
            file = tmp_path / name / f"{task}.csv"
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(["row,y", *lines]) + "\n")
    (tmp_path / "stream.toml").write_text(
        'key = "row"\nkeep_weights = "nodes"\nhome = "secret-homes"\n'
        'target = {files = "target", column = "y"}\n'
        'nodes = {north = {files = "north"}, south = {files = "south"}}\n'
    )
    model, stream = tmp_path / "m.conche", tmp_path / "stream.toml"
    report = tmp_path / "r.html"
    done = run_here("train", stream, "--out", model, "--quiet", "--report", report)
    assert done.returncode == 0 and "secret-homes" not in report.read_text()
    with explored(model, "--stream", stream) as server:
        open_page(page, server.address)
        assert "weights are at home" in page.text_content(".summary")
        assert any("--csv error-matrix" in command for command in compare(page))
    with explored(model) as server:
        open_page(page, server.address)
        assert "STREAM.toml" in page.text_content(".model > .note")
    said = json.loads(run_here("evaluate", model, stream, "--json").stdout)["matrix"]
    printed_rows = values(printed(f"conche explore {model} --stream {stream} --csv error-matrix"))
    assert printed_rows[1][1:] == pytest.approx(said[0])
    refused = run_here("explore", stream, "--target", "y")
    assert refused.returncode == 2 and "conche train" in refused.stderr


def test_what_is_simulated_does_not_depend_on_when_it_is_stopped() -> None:
    """Results are of equally many trials of every network, and the same as if no more had been
    asked for."""
    given = {"p": 24, "n": 10, "T": 3, "shared": 12, "noise": 0.1, "nodes": [1, 2, 8]}
    lines = [line for line in simulated(Wish.read({**given, "trials": 40})) if line["results"]]
    assert [line["results"][0]["trials"] for line in lines] == [2, 5, 10, 20, 30, 40]
    for line in lines[:4]:
        trials = line["results"][0]["trials"]
        assert {result["trials"] for result in line["results"]} == {trials}
        *_, last = simulated(Wish.read({**given, "trials": trials}))
        for result, again in zip(line["results"], last["results"], strict=True):
            assert result["mean"].tolist() == again["mean"].tolist()
            assert result["stderr"].tolist() == again["stderr"].tolist()
    expected = conche.simulate(3, 10, [3] * 8, n_shared=12, noise_var=0.1, trials=40)
    assert lines[-1]["results"][-1]["mean"] == pytest.approx(expected.mean)


def test_commands_have_every_digit() -> None:
    setting = Setting.read({"noise": "0.12345678901234567", "shared": "1e-7"})
    words = setting.csv_command("error-over-nodes").split()
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert float(given["--noise"]) == 0.12345678901234567 and float(given["--shared"]) == 1e-7


def test_a_csv_has_no_formulas_and_one_line_of_comment() -> None:
    table = Table(["=1+1", "b"], [["@x", -1.5], [None, float("inf")]])
    text = csv_text(table, "conche explore 'a\nb'")
    assert text == "# conche explore 'a b'\n'=1+1,b\n'@x,-1.5\n,\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("--csv tasks", "error-over-nodes"),
        ("--csv learning-curves", "--simulate"),
        ("--csv error-over-nodes --features 0", "--features 0"),
        ("--csv error-over-nodes --simulate 1,x", "'x'"),
        ("--csv error-over-nodes --features 24 --simulate 5", "--simulate 5"),
        ("--csv error-over-nodes --simulate 1 --trials 1", "--trials 1"),
        ("--csv error-over-nodes --features 1000000000 --simulate 1", "too large"),
        ("--csv error-over-nodes --nodes 3", "--nodes"),
        ("--csv error-over-nodes --port 3", "--port"),
        ("--simulate 3", "--csv"),
        ("MODEL --csv nothing", "spectrum"),
        ("MODEL --csv spectrum --features 3", "--features"),
        ("STREAM --target y --nodes 1,2", "--nodes 1,2"),
    ],
)
def test_what_cannot_be_printed_is_one_line(folder: Path, arguments: str, word: str) -> None:
    places = {"MODEL": folder / "m.conche", "STREAM": folder / "months"}
    done = run_here("explore", *(places.get(each, each) for each in arguments.split()))
    assert done.returncode == 2 and done.stdout == ""
    assert word in done.stderr and done.stderr.count("\n") == 1


def test_the_page_opens_with_the_stream_that_was_given() -> None:
    with explored("--features", 24, "--noise", 0.5) as server:
        assert server.address.endswith("&p=24&noise=0.5")
