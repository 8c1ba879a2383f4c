// The error over tasks, and round by round.
import { latest, query } from "./api.js";
import { chart } from "./chart.js";
import { STREAM } from "./controls.js";
import { fresh, h } from "./dom.js";
import { figure } from "./figure.js";
import { number, whole } from "./format.js";
import { simulation } from "./simulation.js";
import { get, listen, set } from "./state.js";

const MARKS = ["circle", "square", "triangle", "diamond"];
const COLOURS = ["s2", "s3", "s5", "s6", "s7", "s8", "s9", "s10"];

export function tasksView() {
  const failed = h("p", { className: "failed", role: "alert", hidden: true });
  const verdict = h("ul", { className: "verdicts" });
  const over = figure("h2");
  const byRound = figure("h2");
  over.node.classList.add("wide");
  byRound.node.classList.add("wide");
  let answer = null;
  let points = [];
  let curves = [];
  let again = ""; // the simulation that the address asks for
  const chosen = () => (answer ? answer.curves.map((each) => each.n_nodes) : [1]);
  const wish = () => ({ ...Object.fromEntries(STREAM.map((key) => [key, get()[key]])), nodes: chosen() });
  const first = simulation({ kind: "points", label: "Simulate these", wish, show: (found) => { points = found; draw(); } });
  const second = simulation({ kind: "rounds", label: "Simulate round by round", wish, show: (found) => { curves = found; drawRounds(); } });
  const node = h("div", {}, failed, nodesField(), over.node, first.node,
    h("section", { className: "panel" }, h("h2", {}, "Growing or settling"), verdict), byRound.node, second.node);

  function draw() {
    if (!answer) return;
    const series = answer.curves.map((each, i) => ({
      name: `Algorithm 1, K = ${whole(each.n_nodes)}`, className: COLOURS[i], x: answer.tasks, y: each.errors,
      mark: answer.tasks.length <= 40 ? MARKS[i % 4] : null,
    }));
    const mark = answer.tasks.length === 1 ? "diamond" : null; // one point is no line
    series.push({ name: "Conche method", className: "s1", x: answer.tasks, y: answer.conche, mark });
    series.push({ name: "Offline, all tasks so far", className: "s4 dot", x: answer.tasks, y: answer.offline, mark });
    for (const each of points) {
      const i = chosen().indexOf(each.n_nodes);
      series.push({ name: `simulated, K = ${whole(each.n_nodes)}`, className: `${COLOURS[i]} hollow`, line: false, mark: MARKS[i % 4], x: answer.tasks, y: each.mean, stderr: each.stderr });
    }
    const columns = ["task", ...series.map((each) => each.name), ...points.map((each) => `stderr, K = ${whole(each.n_nodes)}`)];
    over.update({
      title: "Error over tasks", name: "error-over-tasks",
      command: answer.command + (points.length ? first.options() : ""), note: noteOf(answer),
      legend: series.map((each) => [each.name, each.className]),
      draw: (width) => chart({
        title: "Error over tasks", width, height: Math.min(Math.max(width * 0.5, 280), 440), series,
        x: { label: "tasks learnt" }, y: { label: "error over all tasks", log: "auto" },
      }),
      columns, rows: answer.tasks.map((t, i) => [t, ...series.map((each) => each.y[i]), ...points.map((each) => each.stderr[i])]),
    });
    verdict.replaceChildren(...answer.curves.map((each) => h("li", {}, verdictOf(each))));
  }

  function drawRounds() {
    const { rounds } = get();
    const series = curves.map((each) => ({
      name: `K = ${whole(each.n_nodes)}`, className: COLOURS[Math.max(chosen().indexOf(each.n_nodes), 0)],
      x: each.mean.map((_, i) => (i + 1) / rounds), y: each.mean, stderr: each.mean.length <= 60 ? each.stderr : null,
      mark: each.mean.length <= 60 ? MARKS[Math.max(chosen().indexOf(each.n_nodes), 0) % 4] : null,
    }));
    byRound.node.classList.toggle("empty", !series.length);
    byRound.update({
      title: "Learning curves by round", name: "learning-curves", command: series.length ? answer.by_round + second.options() : "",
      note: series.length ? `Simulated: after each of ${rounds} ${rounds === 1 ? "round" : "rounds"} a task, with standard errors.` : "Drawn from simulated streams: choose the rounds, then simulate.",
      legend: series.map((each) => [each.name, each.className]),
      draw: (width) => (series.length ? chart({
        title: "Learning curves by round", width, height: Math.min(Math.max(width * 0.45, 260), 400), series,
        x: { label: "tasks, with the rounds between" }, y: { label: "error over all tasks", log: "auto" },
      }) : h("p", { className: "placeholder" }, "No simulation yet.")),
      columns: ["task", "round", ...series.flatMap((each) => [each.name, `stderr, ${each.name}`])],
      rows: (series[0]?.x ?? []).map((_, i) => [Math.floor(i / rounds) + 1, (i % rounds) + 1, ...curves.flatMap((each) => [each.mean[i], each.stderr[i]])]),
    });
  }

  const show = (data) => {
    answer = data;
    failed.hidden = true;
    draw();
    drawRounds();
    if (again === "points") first.run();
    if (again === "rounds") second.run();
    again = "";
  };
  const fail = (why) => { failed.textContent = why; failed.hidden = false; };
  const askTasks = latest(show, fail);
  return {
    node,
    update(state, change) {
      if (change && ![...STREAM, "k"].some((key) => key in change)) return;
      if (answer) { first.reset(); second.reset(); }
      again = change ? "" : state.sim;
      askTasks(`/api/tasks?${query(state, STREAM)}&nodes=${encodeURIComponent(state.k)}`);
    },
    end() { first.reset(); second.reset(); },
  };
}

function nodesField() {
  const id = fresh("k");
  const field = h("input", { id, type: "text", inputMode: "numeric", pattern: "\\s*\\d+(\\s*,\\s*\\d+){0,7}\\s*", autocomplete: "off", title: "1 to 8 numbers, with commas between them" });
  field.addEventListener("change", () => {
    if (!field.reportValidity() || !field.value.trim()) return;
    set({ k: field.value.replaceAll(/\s/g, "") });
  });
  const fill = (state) => { if (document.activeElement !== field) field.value = state.k.replaceAll(",", ", "); };
  listen(fill);
  fill(get());
  return h("div", { className: "k-field" }, h("label", { htmlFor: id }, "Numbers of nodes ", h("i", {}, "K")), field);
}

function noteOf(answer) {
  if (answer.curves.some((each) => each.verdict === "unknown")) return "Several rounds on that many nodes would take too long to draw: no curve.";
  const drawn = get().rounds > 1 ? " With several rounds moments are drawn, on a stream in the same proportions, where no closed form is known." : "";
  return `Over all T tasks, seen or not, after each of them.${drawn}`;
}

function verdictOf(each) {
  const K = `K = ${whole(each.n_nodes)}`;
  const last = each.errors.at(-1);
  const radius = `spectral radius ${each.drawn ? "about " : ""}${number(each.radius)}`;
  const after = `${number(last ?? Infinity)} after the last task`;
  if (each.verdict === "unknown") return `${K}: not known; several rounds on that many nodes would take too long to draw.`;
  if (each.verdict === "unbounded") return `${K}: unbounded; some block has nearly as many columns as a task has samples.`;
  if (each.verdict === "edge") return `${K}: between settling and growing (${radius}, from moments that are drawn); ${after}.`;
  if (each.verdict === "grows") return `${K}: grows with every task (${radius}); ${after}.`;
  const least = Math.min(...each.errors.filter((value) => value !== null));
  const back = last > 1.02 * least ? `, up from ${number(least)}: it forgets` : "";
  return `${K}: settles (${radius}); ${after}${back}.`;
}
