"""The page of ``conche explore`` and reports in a real browser: clicks, keys, numbers, barriers."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed (conche[explore])")

import conche

from .helpers.browser import barriers, browsing, page_of
from .helpers.commands import run_here
from .helpers.explored import Server, explored, months

SMALL = "&p=24&n=40&T=4&shared=12&noise=0.1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, and a model and two reports of it."""
    folder = tmp_path_factory.mktemp("trained")
    stream = months(folder / "months")
    first = ("train", stream, "--target", "y", "--nodes", 2, "--out", folder / "m.conche")
    assert run_here(*first, "--report", folder / "train.html").returncode == 0
    second = ("evaluate", folder / "m.conche", stream, "--target", "y", "--offline", stream)
    assert run_here(*second, "--report", folder / "evaluate.html").returncode == 0
    return folder


@pytest.fixture(scope="module")
def server(trained: Path, browser: Any) -> Iterator[Server]:
    with explored(trained / "m.conche", "--stream", trained / "months") as server:
        yield server


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with page_of(browser) as page:
        yield page


def go(page: Any, server: Server, query: str) -> None:
    page.goto(server.address.replace("&view=model", query))
    page.wait_for_selector(".figure svg .line, .cards", state="attached")  # a level has no height


def settled(page: Any) -> None:
    """The advice is there as well, with the last line of the figure."""
    page.wait_for_selector(".series.s1:not(.stale) .line", state="attached")


def state(page: Any) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def saved(page: Any, kind: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Save as {kind}").first.click()
    return Path(waiting.value.path()).read_bytes()


def rows_of(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(data.decode().splitlines()[1:]))


# ---- nodes ----


def test_the_numbers_on_the_page_are_the_planners(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    plan = conche.plan(24, 40, 4, 12, 0.1)
    page.wait_for_selector(".advice-panel table")
    assert page.text_content(".advice") == plan.text
    assert "token" not in page.url
    found = rows_of(saved(page, "CSV"))
    assert [int(row["nodes"]) for row in found] == [row["n_nodes"] for row in plan.table]
    errors = [float(row["algorithm_1"]) for row in found]
    np.testing.assert_allclose(errors, [row["error"] for row in plan.table])
    np.testing.assert_allclose([float(row["conche"]) for row in found], plan.memory.error)
    page.click("summary")  # the same as a table on the page
    shown = page.locator(".numbers tbody tr").first.inner_text().split()
    assert shown[:2] == ["1", f"{plan.table[0]['error']:.3f}"]


def test_sliders_and_fields_move_the_curve_and_the_address(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    settled(page)
    before = page.get_attribute(".figure .s2 .line", "d")
    slider = page.get_by_role("slider", name="Tasks")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "d => document.querySelector('.s2 .line')?.getAttribute('d') !== d", arg=before
    )
    assert state(page)["T"] == "1000" and page.input_value("input[id^='T-']") == "1000"
    page.go_back()
    settled(page)
    page.wait_for_function(
        "d => document.querySelector('.s2 .line')?.getAttribute('d') === d", arg=before
    )
    assert state(page)["T"] == "4" and page.input_value("input[id^='T-']") == "4"
    field = page.get_by_label("Columns p", exact=False).first
    field.fill("48")
    field.press("Tab")
    expected = conche.plan(48, 40, 4, 12, 0.1).text
    page.wait_for_function(
        "text => document.querySelector('.advice').textContent === text", arg=expected
    )
    field.fill("-3")  # refused by the field itself; the picture stays
    field.press("Tab")
    assert state(page)["p"] == "48" and page.text_content(".advice") == expected


def test_bad_sizes_are_shaded_and_the_chart_is_read_by_keys(page: Any, server: Server) -> None:
    go(page, server, "&p=40&n=20&T=4&shared=20&noise=0.1")
    settled(page)
    assert page.locator(".band.near-square").count() == 1
    assert page.locator(".band.unstable").count() == 1
    assert "near-square" in page.text_content(".legend")
    page.locator(".figure svg").first.focus()
    page.keyboard.press("ArrowRight")
    heard = page.text_content("#said")
    plan = conche.plan(40, 20, 4, 20, 0.1)
    assert f"K 1. Algorithm 1, one round (theory) {plan.table[0]['error']:.3f}" in heard
    page.keyboard.press("ArrowRight")
    assert "unbounded" in page.text_content("#said")  # two blocks of 20 columns, 20 samples


def test_points_are_simulated_and_stopped(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    page.get_by_label("trials").select_option("10")
    page.get_by_role("button", name="Simulate points").click()
    page.wait_for_selector(".simulation .note:text-matches('^done')")
    found = [row for row in rows_of(saved(page, "CSV")) if row["simulated"]]
    expected = conche.simulate(4, 40, [12, 12], n_shared=12, noise_var=0.1, trials=10)
    two = next(row for row in found if row["nodes"] == "2")
    assert float(two["simulated"]) == pytest.approx(expected.mean[-1])
    assert float(two["stderr"]) == pytest.approx(expected.stderr[-1])
    assert page.locator(".s3 .bar").count() == len(found) == 5
    assert state(page)["sim"] == "points"  # who opens this address sees the same points
    go(page, server, "&p=600&n=300&T=60&shared=300")
    page.get_by_label("trials").select_option("200")
    page.get_by_role("button", name="Simulate points").click()
    stop = page.get_by_role("button", name="Stop")
    stop.wait_for()
    page.keyboard.press("Tab")
    stop.press("Enter")
    page.wait_for_selector(".simulation .note:text-matches('^stopped')")
    assert page.get_by_role("button", name="Simulate points").is_visible()


def test_a_simulation_ends_with_its_page(page: Any, server: Server) -> None:
    go(page, server, "&p=600&n=300&T=60&shared=300")
    page.get_by_label("trials").select_option("200")
    with page.expect_response(lambda answer: answer.request.method == "POST") as started:
        page.get_by_role("button", name="Simulate points").click()
    name = started.value.json()["id"]
    page.get_by_role("button", name="Stop").wait_for()
    page.goto("about:blank")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _job(server, name) == "running":
        time.sleep(0.2)
    assert _job(server, name) == "stopped"


def _job(server: Server, name: str) -> str:
    return str(server.ask(f"/api/simulations/{name}").json()["state"])


def test_any_number_of_trials_may_be_in_the_address(page: Any, server: Server) -> None:
    go(page, server, f"{SMALL}&trials=37")
    assert page.get_by_label("trials").input_value() == "37"
    page.get_by_role("button", name="Simulate points").click()
    page.wait_for_selector(".simulation .note:text-matches('^done')")
    assert state(page)["trials"] == "37"


def test_figures_are_saved_with_their_command(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    settled(page)
    options = "--features 24 --samples 40 --tasks 4 --shared 12 --noise 0.1"
    command = f"conche explore --csv error-over-nodes {options}"
    assert page.text_content(".figure .command code") == command
    assert page.text_content(".advice-panel .command code") == f"conche plan {options}"
    svg = saved(page, "SVG").decode()
    assert f"<desc>{command}</desc>" in svg and "class=" not in svg and "var(" not in svg
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    legend = page.locator(".legend").first.locator("li").all_inner_texts()
    assert len(legend) == 3 and set(legend) <= set(shown)
    png = saved(page, "PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and f"iTXtComment\0\0\0\0\0{command}".encode() in png
    assert saved(page, "CSV").decode().startswith(f"# {command}\n")


def test_a_refusal_is_shown_on_the_page(browser: Any, server: Server) -> None:
    with page_of(browser, expected="Failed to load resource") as page:  # the browser's own words
        go(page, server, "&p=1e9&n=1e7&T=4&shared=5")
        page.get_by_role("button", name="Simulate points").click()
        page.wait_for_selector(".simulation .note:text-matches('too large')")
        page.context.clear_cookies()
        page.get_by_role("slider", name="Tasks").press("ArrowRight")
        page.wait_for_selector(".failed:text-matches('no token')")


# ---- tasks ----


def test_tasks_over_chosen_nodes(page: Any, server: Server) -> None:
    go(page, server, f"{SMALL}&view=tasks&k=1,4")
    found = rows_of(saved(page, "CSV"))
    for K, sizes in ((1, [24]), (4, [6] * 4)):
        alike = conche.theory.Similarity.shared(4, sizes, 12)
        curve = [float(row[f"Algorithm 1, K = {K}"]) for row in found]
        np.testing.assert_allclose(curve, conche.theory.generalization_error(alike, 40, 0.1))
    field = page.get_by_label("Numbers of nodes")
    field.fill("2, 8")
    field.press("Enter")
    page.wait_for_selector(".verdicts li:text-matches('^K = 8: settles')")
    assert state(page)["k"] == "2,8"
    page.go_back()
    page.wait_for_selector(".verdicts li:text-matches('^K = 4')")


@pytest.mark.parametrize("T", [1, 3, 16, 90])
def test_the_axis_of_tasks_has_whole_numbers(page: Any, server: Server, T: int) -> None:
    go(page, server, f"&p=24&n=40&T={T}&shared=12&view=tasks&k=1")
    ticks = page.locator(".figure svg .grid text[text-anchor='middle']").all_text_contents()
    assert ticks and all(1 <= int(tick) <= T for tick in ticks)


@pytest.mark.parametrize(
    "query", ["&p=2&n=10000&T=5&shared=2&noise=3", "&p=2&n=1e7&T=5&shared=2&noise=1e-6", SMALL]
)
def test_labels_of_an_axis_are_its_values(page: Any, server: Server, query: str) -> None:
    go(page, server, f"{query}&view=tasks&k=1")
    shown = page.locator(".figure svg .grid text[text-anchor='end']")
    labels = [float(text) for text in shown.all_text_contents()]
    heights = [float(each.get_attribute("y")) for each in shown.all()]
    assert len(labels) == len(set(labels)) > 1
    slope = np.diff(labels) / np.diff(heights)
    np.testing.assert_allclose(slope, slope[0], rtol=0.02)  # evenly: not rounded


def test_labels_of_small_and_large_numbers(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    ticks = [2.5e-4, 7.5e-4, 12_345_000, 12_345_500, 1e15, 0, 20, 10_500]
    texts = page.evaluate(
        """async values => {
          const { tick } = await import("/static/format.js");
          return values.map((x) => tick(x, Math.abs(x) < 1e-3 ? 2.5e-4 : 500));
        }""",
        ticks,
    )
    assert texts == ["2.5e-4", "7.5e-4", "12.345M", "12.3455M", "1e15", "0", "20", "10.5k"]


def test_learning_curves_by_round(page: Any, server: Server) -> None:
    go(page, server, f"{SMALL}&view=tasks&k=2&rounds=3&trials=10")
    page.get_by_role("button", name="Simulate round by round").click()
    chart = page.locator(".figure").nth(1).locator("svg .mark")
    page.wait_for_selector(".simulation .note:text-matches('^done')")
    assert chart.count() == 4 * 3  # tasks, times rounds
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as CSV").nth(1).click()
    found = rows_of(Path(waiting.value.path()).read_bytes())
    expected = conche.simulate(4, 40, [12, 12], n_shared=12, noise_var=0.1, n_rounds=3, trials=10)
    last = [float(row["K = 2"]) for row in found][2::3]  # of every task
    np.testing.assert_allclose(last, expected.mean)


# ---- your model ----


def test_the_given_model(page: Any, server: Server) -> None:
    go(page, server, "&view=model")
    assert page.text_content(".summary h2") == "m.conche"
    assert page.locator(".heat").count() == 2  # the error matrix, and forgetting
    first = page.locator("section:has(h3:text-is('Tasks')) tbody th")
    assert first.all_inner_texts() == [f"2014-0{t}" for t in (1, 2, 3, 4)]
    head = page.get_by_role("button", name="Task", exact=True)
    head.click()
    head.press("Enter")
    assert first.all_inner_texts() == [f"2014-0{t}" for t in (4, 3, 2, 1)]
    cell = page.locator(".nodes td").first
    assert cell.evaluate("cell => getComputedStyle(cell).verticalAlign") == "top"  # of tall rows
    page.locator(".heat").first.focus()
    page.keyboard.press("ArrowRight")
    assert re.search(r"after 2014-01, on 2014-01: [\d.]+", page.text_content("#said"))


def test_a_model_is_dropped_in(page: Any, server: Server, trained: Path, tmp_path: Path) -> None:
    go(page, server, "&view=model")
    other = tmp_path / "other.conche"
    other.write_bytes((trained / "m.conche").read_bytes())
    page.set_input_files("#file", other)
    page.wait_for_selector(".summary h2:text-is('other.conche')")
    assert "conche evaluate other.conche" in page.text_content(".model > .note")


def test_a_file_is_chosen_again(page: Any, server: Server, trained: Path, tmp_path: Path) -> None:
    """It may have been trained on meanwhile; or be gone, or a folder."""
    go(page, server, "&view=model")
    other = tmp_path / "again.conche"
    for _ in range(2):
        other.write_bytes((trained / "m.conche").read_bytes())
        with page.expect_response(lambda answer: "again.conche" in answer.url):
            page.set_input_files("#file", other)
        page.wait_for_selector(".summary h2:text-is('again.conche')")
        assert page.input_value("#file") == ""
    page.evaluate(
        """() => {
          File.prototype.arrayBuffer = () => Promise.reject(new DOMException("", "NotFoundError"));
        }"""
    )
    page.set_input_files("#file", other)
    page.wait_for_selector(".failed:text-matches('again.conche: cannot be read.*conche explore')")
    assert page.locator(".busy").count() == 0


def test_what_was_dropped_stays(page: Any, server: Server, trained: Path, tmp_path: Path) -> None:
    """The command line's own model, which takes longer, does not come in its place."""
    held: list[Any] = []
    page.route("**/api/model", lambda route: held.append(route))  # a dropped one has a name
    page.goto(server.address)
    page.wait_for_selector(".busy")
    other = tmp_path / "other.conche"
    other.write_bytes((trained / "m.conche").read_bytes())
    page.set_input_files("#file", other)
    page.wait_for_selector(".summary h2:text-is('other.conche')")
    with page.expect_response("**/api/model"):
        held[0].continue_()
    page.wait_for_timeout(300)
    assert page.text_content(".summary h2") == "other.conche"


@pytest.mark.parametrize("view", ["nodes", "model"])
def test_a_model_is_dropped_anywhere(page: Any, server: Server, trained: Path, view: str) -> None:
    go(page, server, f"{SMALL}&view={view}")
    data = list((trained / "m.conche").read_bytes())
    page.evaluate(
        """data => {
          const files = new DataTransfer();
          files.items.add(new File([new Uint8Array(data)], "dropped.conche"));
          const event = { bubbles: true, cancelable: true, dataTransfer: files };
          const place = document.querySelector(".figure");
          for (const kind of ["dragover", "drop"]) place.dispatchEvent(new DragEvent(kind, event));
        }""",
        data,
    )
    page.wait_for_selector(".summary h2:text-is('dropped.conche')")
    assert state(page)["view"] == "model"


def test_the_views_are_reached_by_keys_and_by_the_back_button(page: Any, server: Server) -> None:
    go(page, server, SMALL)
    page.get_by_role("link", name="Tasks").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdicts li")
    assert state(page)["view"] == "tasks" and state(page)["p"] == "24"
    page.get_by_role("link", name="Your model").click()
    page.wait_for_selector(".cards")
    page.go_back()
    page.wait_for_selector(".verdicts li")
    page.go_back()
    page.wait_for_selector(".advice-panel")
    assert "view" not in state(page)
    page.get_by_role("button", name="light and dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


# ---- everywhere ----


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (900, "light"), (1600, "dark")])
def test_no_barriers_and_nothing_beyond_the_edge(
    browser: Any, server: Server, trained: Path, width: int, scheme: str
) -> None:
    with page_of(browser, width, scheme) as page:
        views = [f"{SMALL}&view={view}" for view in ("nodes", "tasks", "model")]
        for view in views:
            go(page, server, view)
            assert barriers(page) == [], view
            for summary in page.locator("summary").all():
                if summary.is_visible():
                    summary.click()
            page.wait_for_selector(".numbers[open] tbody tr")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        page.goto((trained / "evaluate.html").as_uri())
        page.wait_for_selector(".cards")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_a_report_is_one_file_that_shows_all(page: Any, trained: Path, name: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    address = (trained / f"{name}.html").as_uri()
    page.goto(address)
    page.wait_for_selector(".figures .heat")
    assert asked == [address]
    titles = page.locator("h2, h3").all_inner_texts()
    for part in (
        "m.conche",
        "Error matrix",
        "Forgetting",
        "Spectrum",
        "Tasks",
        "Options, versions",
    ):
        assert any(part in title for title in titles), part
    page.get_by_role("button", name="Before").click()
    shown = page.locator("section:has(h3:text-is('Tasks')) tbody tr td:nth-child(3)")
    values = [float(text) for text in shown.all_inner_texts()]
    assert values == sorted(values) and len(values) == 4
    text = page.text_content(".about")
    assert f"conche {name}" in text and f"numpy{np.__version__}" in text and "n_nodes2" in text
    assert saved(page, "CSV").decode().startswith(f"# conche {name}")
    if name == "evaluate":
        assert barriers(page) == [] and "offline" in page.text_content(".cards")
