// The error over the number of nodes.
import { latest, query } from "./api.js";
import { chart } from "./chart.js";
import { STREAM } from "./controls.js";
import { h, say } from "./dom.js";
import { commandLine, figure } from "./figure.js";
import { bytes, number, seconds, whole } from "./format.js";
import { simulation } from "./simulation.js";
import { get } from "./state.js";
import { table } from "./table.js";

const BEYOND = 12; // times the median error: what is above is an arrow at the edge
const REST = 120; // ms that a slider rests before the advice is asked for

export function nodesView() {
  const advice = h("p", { className: "advice" }, "One moment ...");
  const failed = h("p", { className: "failed", role: "alert", hidden: true });
  const drawn = figure("h2");
  drawn.node.classList.add("wide");
  const methods = h("div", {});
  const assumed = h("p", { className: "note" });
  const planned = commandLine();
  let answer = null; // the curve
  let advised = null; // the Conche method and the advice, which take longer
  let stale = false; // whether they are of another stream
  let waiting = 0;
  let more = null; // several rounds
  let points = [];
  let again = false; // the address asks for a simulation
  const simulated = simulation({
    kind: "points", label: "Simulate points",
    wish: () => ({ ...stream(), nodes: answer?.simulate ?? [1] }),
    show: (results) => { points = results; draw(); },
  });
  const node = h("div", {}, failed, drawn.node, simulated.node,
    h("section", { className: "panel advice-panel" }, h("h2", {}, "Advice"), advice, methods, assumed, planned.node));

  function stream() {
    const state = get();
    return Object.fromEntries(STREAM.map((key) => [key, state[key]]));
  }

  function draw() {
    if (!answer) return;
    const series = seriesOf({ answer, advised, stale, more, points });
    drawn.update({
      title: "Error over the number of nodes", name: "error-over-nodes",
      note: bad(answer), command: answer.command + (points.length ? simulated.options() : ""),
      legend: [...series.filter((each) => each.name !== "best").map((each) => [each.name, each.className]), ...bandLegend(answer)],
      draw: (width) => chart({
        title: "Error over the number of nodes", width, height: Math.min(Math.max(width * 0.5, 280), 460),
        series, bands: answer.bands,
        x: { label: "number of nodes, K", log: true, base: 2, range: [1, Math.max(answer.nodes.at(-1), 2)] },
        y: { label: "error over all tasks", log: "auto", most: BEYOND * median(answer.errors) },
      }),
      columns: ["nodes", "algorithm_1", "several_rounds", "conche", "offline", "spectral_radius", "warning", "simulated", "stderr"],
      rows: answer.nodes.map((K, i) => {
        const point = points.find((each) => each.n_nodes === K);
        const several = more?.errors[more.nodes.indexOf(K)];
        return [K, answer.errors[i], several, stale ? null : advised?.conche, answer.offline, answer.radii[i], answer.warnings[i], point?.mean.at(-1), point?.stderr.at(-1)];
      }),
    });
    drawn.node.dataset.best = answer.best.n_nodes;
  }

  function show(data) {
    answer = data;
    failed.hidden = true;
    draw();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const state = get();
      askAdvice(`/api/advice?${query(state, STREAM)}`);
      if (state.rounds > 1) askMore(`/api/rounds?${query(state, STREAM)}`);
    }, advised ? REST : 0);
    if (again) simulated.run();
    again = false;
  }

  function advise(data) {
    advised = data;
    stale = false;
    advice.textContent = data.text;
    planned.show(data.command);
    methods.replaceChildren(methodsTable(data));
    assumed.textContent = `Assumed: ${data.assumptions.join("; ")}.`;
    draw();
    say(`Best: ${answer.best.n_nodes} nodes, error ${number(answer.best.error)}`);
  }

  const fail = (why) => { failed.textContent = why; failed.hidden = false; };
  const askNodes = latest(show, fail);
  const askAdvice = latest(advise, fail);
  const askMore = latest((data) => { more = data.rounds === get().rounds ? data : null; draw(); }, fail);
  return {
    node,
    update(state, change) {
      if (change && !STREAM.some((key) => key in change)) return;
      if (answer) simulated.reset();
      again = !change && state.sim === "points";
      more = null;
      stale = true;
      askNodes(`/api/nodes?${query(state, STREAM)}`);
    },
    end() { simulated.reset(); },
  };
}

function seriesOf({ answer, advised, stale, more, points }) {
  const warned = answer.warnings.map((warning) => (warning ? "warned" : ""));
  const out = [{
    name: "Algorithm 1, one round (theory)", className: "s2", x: answer.nodes, y: answer.errors, mark: "circle",
    markers: answer.warnings.map((warning) => (warning ? "cross" : "circle")), classes: warned, notes: answer.warnings,
  }];
  if (more) {
    out.push({ name: `Algorithm 1, ${more.rounds} rounds (theory)`, className: "s5 dash", x: more.nodes, y: more.errors, mark: "triangle", ...growing(more.verdicts) });
  }
  if (advised) {
    out.push({ name: `Conche method, rank ${whole(advised.rank)}`, className: stale ? "s1 stale" : "s1", level: advised.conche });
  }
  out.push({ name: "Offline, all tasks at once", className: "s4 dot", level: answer.offline });
  if (points.length) {
    out.push({
      name: "Simulated, ± standard error", className: "s3", line: false, mark: "diamond",
      x: points.map((each) => each.n_nodes), y: points.map((each) => each.mean.at(-1)), stderr: points.map((each) => each.stderr.at(-1)),
    });
  }
  if (answer.best.error !== null) {
    out.push({ name: "best", className: "best", silent: true, line: false, mark: "star", x: [answer.best.n_nodes], y: [answer.best.error] });
  }
  return out;
}

// Crosses where the error grows with every task.
function growing(verdicts) {
  const grows = verdicts.map((verdict) => verdict === "grows");
  return {
    markers: grows.map((yes) => (yes ? "cross" : "triangle")), classes: grows.map((yes) => (yes ? "warned" : "")),
    notes: grows.map((yes) => (yes ? "grows with every task" : null)),
  };
}

function median(values) {
  const there = values.filter((value) => value !== null).sort((a, b) => a - b);
  return there[Math.floor(there.length / 2)] ?? 1;
}

function bandLegend(answer) {
  const kinds = new Set(answer.bands.map((band) => band.kind));
  const names = { unstable: "unstable: with one round, grows with every task", "near-square": "near-square: blocks close to the samples" };
  return [...kinds].map((kind) => [names[kind], `swatch ${kind}`]);
}

function bad(answer) {
  const said = answer.bands.map((band) => `${band.kind}: ${band.from === band.to ? band.from : `${whole(band.from)} to ${whole(band.to)}`} nodes`);
  return said.length ? `With one round: ${said.join("; ")}.` : "";
}

function methodsTable(data) {
  return table({
    caption: "What each method keeps and sends", rows: data.methods,
    columns: [
      { name: "Method", key: "method", text: true },
      { name: "Error", key: "error", show: (v) => number(v ?? Infinity) },
      { name: "Nodes", key: "nodes", show: whole },
      { name: "A node keeps", key: "kept_bytes", show: bytes },
      { name: "Sent a task", key: "bytes", show: bytes },
      { name: "Exchanges", key: "exchanges" },
      { name: "Time a task", key: "seconds", show: seconds },
    ],
  });
}
