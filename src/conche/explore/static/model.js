// A trained model: the same view on the page and in reports.
import { chart } from "./chart.js";
import { h } from "./dom.js";
import { figure } from "./figure.js";
import { bytes, number, percent, percentTick, seconds, whole } from "./format.js";
import { heat } from "./heat.js";
import { table } from "./table.js";

const MANY_NODES = 200;

export function modelView(data) {
  const out = h("div", { className: "model" });
  out.append(summary(data));
  const parts = [errors, forgetting, curve, history, spectrum, costs, rounds];
  const grid = h("div", { className: "figures" });
  for (const part of parts) {
    const drawn = part(data);
    if (drawn) grid.append(drawn);
  }
  if (data.without) out.append(h("p", { className: "note" }, data.without));
  out.append(grid, tasksTable(data), nodesTable(data), about(data));
  return out;
}

// A figure's table, and the command that prints it.
function numbers(data, name) {
  return { name, ...data.figures[name] };
}

function card(name, value, hint) {
  return h("div", { className: "card" }, h("dt", {}, name), h("dd", {}, value), hint ? h("dd", { className: "hint" }, hint) : null);
}

function summary(data) {
  const last = data.history.at(-1);
  const show = data.matrix?.rate ? percent : number;
  const cards = [
    card("Tasks", whole(data.tasks), `${whole(data.samples)} samples`),
    card("Nodes", whole(data.nodes.length), `${whole(data.columns)} columns`),
    card("Kept", bytes(data.kept_bytes), data.at_home ? "by the coordinator alone" : `file ${bytes(data.file_bytes)}`),
    card("Sent", bytes(sum(data.history, "bytes")), took(data)),
  ];
  if (data.matrix) {
    const beside = Object.entries(data.matrix.beside).map(([method, level]) => `${method} ${show(level)}`).join(", ");
    cards.unshift(
      card(`Average ${data.matrix.metric}`, show(data.matrix.average), beside || `over all ${data.matrix.on} tasks`),
      card("Forgetting", data.matrix.forgetting === null ? "–" : signed(data.matrix.forgetting, data.matrix.rate), data.matrix.forgetting === null ? "not defined here" : "since just learnt"));
  }
  if (last && last.gap !== null) {
    cards.push(card("Above offline", last.gap < 1e-9 ? "0" : percent(last.gap), "of the objective"));
  }
  const aim = data.target ? `, target ${data.target}` : "";
  return h("section", { className: "summary" },
    h("h2", {}, data.file), h("p", { className: "note" }, `${data.class}${aim}${data.at_home ? "; weights are at home, with the nodes" : ""}`),
    h("dl", { className: "cards" }, cards));
}

function sum(rows, key) {
  return rows.reduce((total, row) => total + (row[key] ?? 0), 0);
}

function took(data) {
  const total = sum(data.history, "seconds");
  return total ? `in ${seconds(total)}` : "both ways";
}

function signed(value, rate) {
  return rate ? percent(value, true) : `${value > 0 ? "+" : ""}${number(value)}`;
}

function errors(data) {
  const found = data.matrix;
  if (!found) return null;
  const show = found.rate ? (v) => (100 * v).toFixed(1) : number;
  const drawn = figure();
  const unit = found.rate ? ", in %" : "";
  drawn.update({
    title: `Error matrix: ${found.metric} on each ${found.on} task${unit}`, ...numbers(data, "error-matrix"),
    note: found.learnt.length < 2 ? `${data.at_home ? "The nodes have" : "The model’s file has"} the last estimate alone.` : "A row after each task that was learnt, a column for each task it was tried on.",
    draw: (width) => heat({ title: "Error matrix", values: found.values, rows: found.learnt, columns: found.tasks, kind: "values", show, width, xLabel: `${found.on} task`, yLabel: "after" }),
  });
  drawn.node.classList.add("wide");
  return drawn.node;
}

function forgetting(data) {
  const found = data.matrix;
  if (!found?.changes) return null;
  const show = (v) => (v === null ? "–" : found.rate ? (100 * v).toFixed(1) : number(v));
  const drawn = figure();
  drawn.update({
    title: "Forgetting: worse than when just learnt", ...numbers(data, "forgetting"),
    note: found.forgetting === null ? "" : `${signed(found.forgetting, found.rate)} on average after the last task; red is worse, blue is better.`,
    draw: (width) => heat({ title: "Forgetting", values: found.changes, rows: found.learnt, columns: found.tasks, kind: "changes", show, width, xLabel: `${found.on} task`, yLabel: "after" }),
  });
  return drawn.node;
}

function curve(data) {
  const found = data.matrix;
  if (!found || found.all.length < 2) return null;
  const steps = found.all.map((_, i) => i + 1);
  const series = [];
  if (found.seen) series.push({ name: "tasks seen so far", className: "s1", x: steps, y: found.seen, mark: "circle" });
  series.push({ name: "all tasks", className: "s2 dash", x: steps, y: found.all, mark: "square" });
  Object.entries(found.beside).forEach(([method, level], i) => series.push({ name: `${method}, all at once`, className: `s${4 + i} dot`, level }));
  const drawn = figure();
  drawn.update({
    title: `Average over ${found.on} tasks`, ...numbers(data, "average"),
    legend: series.map((each) => [each.name, each.className]),
    draw: (width) => chart({ title: "Mean error over tasks", width, height: 320, series, x: { label: "tasks learnt" }, y: { label: found.metric, log: "auto", tick: found.rate ? percentTick : undefined } }),
  });
  return drawn.node;
}

function history(data) {
  const rows = data.history;
  if (!rows.length) return null;
  const x = rows.map((row) => row.task);
  const series = [
    { name: "before it was learnt", className: "s2", x, y: rows.map((row) => row.before), mark: "square" },
    { name: "after", className: "s1", x, y: rows.map((row) => row.after), mark: "circle" },
  ];
  const drawn = figure();
  drawn.update({
    title: "Each task, before and after it was learnt", ...numbers(data, "before-and-after"),
    legend: series.map((each) => [each.name, each.className]),
    draw: (width) => chart({ title: "Error before and after", width, height: 320, series, x: { label: "task" }, y: { label: data.error, log: "auto" } }),
  });
  return drawn.node;
}

function spectrum(data) {
  const found = data.spectrum;
  if (!found) return null;
  const x = found.values.map((_, i) => i + 1);
  const kept = found.rank === null
    ? `All ${whole(found.n_values)} directions are kept: nothing is lost.`
    : `Rank ${found.rank}${found.rank > found.n_values ? " (the intercept’s direction, not drawn, is one of them)" : ""} of ${whole(found.weights)} weights keeps ${percent(found.share)} of the curvature between nodes; the rest (${percent(1 - found.share)}) is kept within each node’s own block.`;
  const drawn = figure();
  const series = [{ name: "kept directions", className: "s1", x, y: found.values, mark: x.length <= 60 ? "circle" : null }];
  drawn.update({
    title: "Spectrum of what is remembered", ...numbers(data, "spectrum"), note: kept,
    draw: (width) => chart({ title: "Spectrum", width, height: 320, series, x: { label: "direction" }, y: { label: `curvature, ${found.unit}`, log: "auto" } }),
  });
  return drawn.node;
}

function costs(data) {
  const rows = data.history;
  if (!rows.length) return null;
  const x = rows.map((row) => row.task);
  const timed = rows.some((row) => row.seconds > 0);
  const series = [{ name: "MB sent", className: "s3", x, y: rows.map((row) => row.bytes / 1e6), mark: "diamond" }];
  if (timed) series.push({ name: "seconds", className: "s2 dash", x, y: rows.map((row) => row.seconds), mark: "square" });
  const drawn = figure();
  drawn.update({
    title: timed ? "Bytes and seconds a task" : "Bytes a task", ...numbers(data, "costs"),
    legend: series.map((each) => [each.name, each.className]),
    draw: (width) => chart({ title: "Costs", width, height: 320, series, x: { label: "task" }, y: { label: timed ? "MB, seconds" : "MB", log: "auto" } }),
  });
  return drawn.node;
}

function rounds(data) {
  const rows = data.rounds;
  if (!rows.some((row) => row.round > 1)) return null;
  const x = rows.map((_, i) => i + 1);
  const series = [{ name: "residual", className: "s1", x, y: rows.map((row) => row.residual), mark: rows.length <= 60 ? "circle" : null }];
  const drawn = figure();
  drawn.update({
    title: "Learning curve, round by round", ...numbers(data, "rounds"),
    note: "Root mean square of the task’s residual after every round, all tasks in a row.",
    draw: (width) => chart({ title: "Residual by round", width, height: 320, series, x: { label: "round, over all tasks" }, y: { label: "residual", log: "auto" } }),
  });
  return drawn.node;
}

function tasksTable(data) {
  return section("Tasks", table({
    caption: "What was learnt; click a head to sort", rows: data.history,
    columns: [
      { name: "Task", key: "name", text: true },
      { name: "Samples", key: "samples", show: whole },
      { name: "Before", key: "before", show: number },
      { name: "After", key: "after", show: number },
      { name: "Rounds", key: "rounds" },
      { name: "Seconds", key: "seconds", show: seconds },
      { name: "Sent", key: "bytes", show: bytes },
      { name: "Above offline", key: "gap", show: (v) => (v === null ? "unknown" : v < 1e-9 ? "0" : percent(v)) },
    ],
  }));
}

function nodesTable(data) {
  const rows = data.nodes.slice(0, MANY_NODES).map((node, k) => ({
    node: k, columns: node.columns, names: node.names.join(", ") + (node.columns > node.names.length && node.names.length ? ", …" : ""),
  }));
  const caption = data.nodes.length > MANY_NODES ? `The first ${MANY_NODES} of ${whole(data.nodes.length)} nodes` : "Which node holds which columns";
  return section("Nodes and their columns", table({
    caption, rows, className: "nodes",
    columns: [{ name: "Node", key: "node" }, { name: "Columns", key: "columns", show: whole }, { name: "Names", key: "names", text: true }],
  }));
}

function section(title, ...children) {
  return h("section", { className: "panel" }, h("h3", {}, title), children);
}

function about(data) {
  const pairs = (object) => Object.entries(object).map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, String(value))));
  const options = Object.keys(data.options).length ? pairs(data.options) : [h("div", {}, h("dt", {}, "all"), h("dd", {}, "defaults"))];
  return h("section", { className: "panel about" },
    h("h3", {}, "Options, versions, command"),
    h("dl", { className: "pairs" }, options),
    h("dl", { className: "pairs" }, pairs(data.versions)),
    h("pre", { tabIndex: 0 }, data.command));
}
