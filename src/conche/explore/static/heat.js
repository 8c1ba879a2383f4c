// A matrix as coloured cells, with values where there is room, and a scale beside it.
import { h, s, say } from "./dom.js";
import { number } from "./format.js";

// Cividis-like for values (dark is low), blue to red for changes; both safe for all eyes.
const RAMPS = {
  values: [[0, 32, 77], [64, 77, 107], [124, 123, 120], [188, 175, 111], [255, 234, 70]],
  changes: [[33, 102, 172], [146, 197, 222], [247, 247, 247], [244, 165, 130], [178, 24, 43]],
};

function colour(ramp, share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[i].map((c, k) => Math.round(c + (at - i) * (ramp[i + 1][k] - c)));
}

export function heat({ title, values, rows, columns, kind, show = number, width = 700, xLabel, yLabel }) {
  const flat = values.flat().filter((v) => v !== null && Number.isFinite(v));
  const most = kind === "changes" ? Math.max(...flat.map(Math.abs), 1e-12) : Math.max(...flat);
  const least = kind === "changes" ? -most : Math.min(...flat);
  const wide = kind === "values" && least > 0 && most > 20 * least;
  const place = (v) => {
    if (most === least) return 0.5;
    return wide ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least);
  };
  const left = Math.min(26 + 7 * Math.max(...rows.map((name) => Math.min(name.length, 14))), 0.3 * width);
  const right = 80;
  const cell = Math.max((width - left - right) / columns.length, 2);
  const tall = Math.min(Math.max(Math.min(cell, 46), 14), Math.max(560 / rows.length, 4));
  const top = 8;
  const bottom = top + tall * rows.length;
  const names = columns.some((name) => name.length > 4);
  const height = bottom + (names ? 84 : 46);
  const node = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, class: "chart heat", "aria-label": `${title}: from ${show(least)} to ${show(most)}. Arrow keys read the cells.` });
  node.append(s("title", {}, title));
  const shown = cell > 34 && tall > 15;
  values.forEach((row, i) => row.forEach((value, j) => {
    if (value === null) return;
    const [r, g, b] = colour(RAMPS[kind], place(value));
    const box = { x: left + j * cell, y: top + i * tall, width: Math.max(cell - 1, 1), height: Math.max(tall - 1, 1) };
    node.append(s("rect", { class: "cell", ...box, fill: `rgb(${r},${g},${b})`, rx: cell > 12 ? 2 : 0 }));
    if (!shown) return;
    const dark = 0.299 * r + 0.587 * g + 0.114 * b < 140;
    node.append(s("text", { class: dark ? "on-dark" : "on-light", x: box.x + cell / 2, y: box.y + tall / 2 + 3.5, "text-anchor": "middle" }, show(value)));
  }));
  ticks(node, { rows, columns, left, cell, tall, bottom, top, names });
  scaleBar(node, { x: width - right + 14, top, bottom: Math.min(bottom, top + 220), kind, least, most, show, wide });
  node.append(s("g", { class: "labels" }, s("text", { x: left + (cell * columns.length) / 2, y: height - 6, "text-anchor": "middle" }, xLabel)));
  node.append(s("g", { class: "labels" }, s("text", { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel)));
  const holder = h("div", { className: "chart-holder" }, node);
  follow({ node, holder, values, rows, columns, left, top, cell, tall, show, width, height });
  return holder;
}

function ticks(node, { rows, columns, left, cell, tall, bottom, top, names }) {
  const group = s("g", { class: "grid" });
  const short = (name) => (name.length > 14 ? `${name.slice(0, 6)}…${name.slice(-7)}` : name);
  const down = Math.ceil(13 / tall);
  rows.forEach((name, i) => {
    if (i % down) return;
    group.append(s("text", { x: left - 6, y: top + (i + 0.5) * tall + 4, "text-anchor": "end" }, short(name)));
  });
  const across = Math.ceil((names ? 16 : 26) / cell);
  columns.forEach((name, j) => {
    if (j % across) return;
    const x = left + (j + 0.5) * cell;
    group.append(names
      ? s("text", { transform: `translate(${x + 4} ${bottom + 12}) rotate(-45)`, "text-anchor": "end" }, short(name))
      : s("text", { x, y: bottom + 16, "text-anchor": "middle" }, name));
  });
  node.append(group);
}

function scaleBar(node, { x, top, bottom, kind, least, most, show, wide }) {
  const steps = 40;
  const each = (bottom - top) / steps;
  for (let i = 0; i < steps; i += 1) {
    const [r, g, b] = colour(RAMPS[kind], 1 - i / (steps - 1));
    node.append(s("rect", { x, y: top + i * each, width: 10, height: each + 0.5, fill: `rgb(${r},${g},${b})` }));
  }
  const middle = wide ? Math.sqrt(least * most) : (least + most) / 2;
  node.append(s("g", { class: "grid" },
    s("text", { x: x + 14, y: top + 8 }, show(most)),
    s("text", { x: x + 14, y: (top + bottom) / 2 + 4 }, show(middle)),
    s("text", { x: x + 14, y: bottom }, show(least))));
}

function follow({ node, holder, values, rows, columns, left, top, cell, tall, show, width, height }) {
  const tip = h("div", { className: "tip", hidden: true });
  const mark = s("rect", { class: "cursor", fill: "none", width: cell, height: tall, visibility: "hidden" });
  node.append(mark);
  holder.append(tip);
  let [i, j] = [0, -1];
  const at = (row, column, aloud) => {
    i = Math.min(Math.max(row, 0), rows.length - 1);
    j = Math.min(Math.max(column, 0), columns.length - 1);
    const said = `after ${rows[i]}, on ${columns[j]}: ${show(values[i][j])}`;
    mark.setAttribute("x", left + j * cell);
    mark.setAttribute("y", top + i * tall);
    mark.setAttribute("visibility", "visible");
    tip.replaceChildren(said);
    tip.hidden = false;
    const share = (left + (j + 1) * cell) / width;
    tip.style.left = share > 0.55 ? "auto" : `${100 * share}%`;
    tip.style.right = share > 0.55 ? `${100 * (1 - share) + 8}%` : "auto";
    tip.style.top = `${(100 * (top + i * tall)) / height}%`;
    if (aloud) say(said);
  };
  node.addEventListener("pointermove", (event) => {
    const seen = node.getBoundingClientRect();
    const x = ((event.clientX - seen.left) / seen.width) * width;
    const y = ((event.clientY - seen.top) / seen.height) * height;
    at(Math.floor((y - top) / tall), Math.floor((x - left) / cell), false);
  });
  const hide = () => { tip.hidden = true; mark.setAttribute("visibility", "hidden"); };
  node.addEventListener("pointerleave", hide);
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    at(i + step[0], j + step[1], true);
  });
}
