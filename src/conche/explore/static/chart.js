// Lines, points with error bars and shaded bands, as one SVG that is read by eye, ear and keyboard.
import { h, s, say } from "./dom.js";
import { number, tick } from "./format.js";
import { linear, log } from "./scale.js";

const PAD = { left: 66, right: 18, top: 14, bottom: 46 };
const MARKS = {
  circle: "M-3.6,0a3.6,3.6 0 1,0 7.2,0a3.6,3.6 0 1,0 -7.2,0",
  square: "M-3.3,-3.3h6.6v6.6h-6.6z",
  diamond: "M0,-4.6L4.6,0L0,4.6L-4.6,0z",
  triangle: "M0,-4.4L4.2,3.4H-4.2z",
  cross: "M-4.5,-2.2L-2.2,-4.5L0,-2.2L2.2,-4.5L4.5,-2.2L2.2,0L4.5,2.2L2.2,4.5L0,2.2L-2.2,4.5L-4.5,2.2L-2.2,0z",
  beyond: "M0,-7L4.6,0H1.4V7H-1.4V0H-4.6z",
  star: "M0,-9L2.4,-3L8.7,-2.7L3.8,1.3L5.4,7.4L0,4L-5.4,7.4L-3.8,1.3L-8.7,-2.7L-2.4,-3z",
};

// series: {name, className, x, y, stderr?, mark?, line?, level?}; level: one y for all x.
export function chart({ title, x, y, series, bands = [], width = 760, height = 400 }) {
  const box = {
    left: PAD.left, top: PAD.top, right: width - PAD.right, bottom: height - PAD.bottom,
  };
  const axes = scales({ x, y, series, box });
  const node = s("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, class: "chart",
    "aria-label": `${title}. ${spoken(series, x)}`,
  });
  node.append(s("title", {}, title));
  node.append(s("g", { class: "bands" }, bands.map((band) => drawBand(band, axes, box))));
  node.append(drawGrid(axes, box, x, y, width));
  for (const each of series) node.append(drawSeries(each, axes, box));
  node.append(labels(x, y, box, width, height));
  const holder = h("div", { className: "chart-holder" }, node);
  follow({ node, holder, series, axes, box, x });
  return holder;
}

function finite(values) {
  return values.filter((v) => v !== null && v !== undefined && Number.isFinite(v));
}

function scales({ x, y, series, box }) {
  const xs = finite(series.flatMap((each) => each.x ?? []));
  const ys = finite(series.flatMap((each) => (each.y ?? [each.level]).flatMap((v, i) => {
    const e = each.stderr?.[i] ?? 0;
    return v === null ? [] : [v - e, v + e]; // null: unbounded
  })));
  const xr = x.range ?? [Math.min(...xs), Math.max(...xs)];
  let low = ys.length ? Math.min(...ys) : 0;
  let high = ys.length ? Math.max(...ys) : 1;
  const positive = low > 0;
  const logarithmic = y.log === true || (y.log === "auto" && positive && high > 20 * low);
  if (y.most) high = Math.min(high, Math.max(y.most, low));
  const room = [box.left, box.right];
  const across = x.log ? log(xr, room, x.base ?? 10) : linear(xr, room, true); // counts, all of them
  if (logarithmic && positive) {
    return { x: across, y: log([low / 1.15, high * 1.15], [box.bottom, box.top]) };
  }
  const more = 0.06 * (high - low || Math.abs(high) || 1);
  low = y.zero !== false && positive && low < 0.6 * high ? 0 : low - more;
  return { x: across, y: linear([low, high + more], [box.bottom, box.top]) };
}

function drawBand(band, axes, box) {
  const from = Math.max(axes.x.at(band.from), box.left);
  const to = Math.min(axes.x.at(band.to), box.right);
  return s("rect", {
    class: `band ${band.kind}`, x: from - 2, width: Math.max(to - from, 0) + 4,
    y: box.top, height: box.bottom - box.top,
  });
}

function drawGrid(axes, box, x, y, width) {
  const out = s("g", { class: "grid" });
  const most = Math.max(Math.floor((width - 90) / 54), 3);
  const up = axes.y.ticks(5);
  for (const value of up) {
    const at = axes.y.at(value);
    if (at < box.top - 1 || at > box.bottom + 1) continue;
    out.append(s("line", { x1: box.left, x2: box.right, y1: at, y2: at }));
    out.append(s("text", { x: box.left - 8, y: at + 4, "text-anchor": "end" }, (y.tick ?? tick)(value, gapOf(up))));
  }
  const all = x.ticks ?? axes.x.ticks(most);
  const every = Math.ceil(all.length / most);
  all.forEach((value, i) => {
    const at = axes.x.at(value);
    if (at < box.left - 1 || at > box.right + 1) return;
    out.append(s("line", { x1: at, x2: at, y1: box.bottom, y2: box.bottom + 5 }));
    if (i % every) return;
    const said = x.names?.[i] ?? (x.tick ?? tick)(value, gapOf(all));
    out.append(s("text", { x: at, y: box.bottom + 19, "text-anchor": "middle" }, said));
  });
  out.append(s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  return out;
}

// The least distance between ticks.
function gapOf(values) {
  const gaps = values.slice(1).map((value, i) => value - values[i]);
  return gaps.length ? Math.min(...gaps) : Math.abs(values[0]);
}

function labels(x, y, box, width, height) {
  const middle = (box.top + box.bottom) / 2;
  return s("g", { class: "labels" },
    s("text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, x.label),
    s("text", { transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, y.label));
}

function drawSeries(each, axes, box) {
  const out = s("g", { class: `series ${each.className}` });
  if (each.level !== undefined) {
    if (each.level === null) return out;
    const at = axes.y.at(each.level);
    out.append(s("line", { class: "line", x1: box.left, x2: box.right, y1: at, y2: at }));
    return out;
  }
  const points = each.x.map((v, i) => {
    const value = each.y[i];
    const there = value !== null && Number.isFinite(value);
    return there ? [axes.x.at(v), Math.max(axes.y.at(value), box.top), i, value] : null;
  });
  if (each.line !== false) out.append(s("path", { class: "line", d: path(points) }));
  if (each.stderr) {
    for (const point of points) {
      if (!point || !each.stderr[point[2]]) continue;
      const e = each.stderr[point[2]];
      const [top, bottom] = [point[3] + e, Math.max(point[3] - e, 1e-300)].map(axes.y.at);
      if (bottom < box.top) continue;
      out.append(s("path", { class: "bar", d: `M${point[0]} ${top}V${bottom}m-4 0h8M${point[0] - 4} ${top}h8` }));
    }
  }
  if (each.mark) {
    points.forEach((point, i) => {
      if (!point) return;
      const beyond = axes.y.at(point[3]) < box.top - 1;
      const kind = beyond ? "beyond" : each.markers?.[i] ?? each.mark;
      if (beyond) point[1] += 7;
      out.append(s("path", {
        class: `mark ${each.classes?.[i] ?? ""}`, d: MARKS[kind],
        transform: `translate(${point[0].toFixed(2)} ${point[1].toFixed(2)})`,
      }));
    });
  }
  return out;
}

// Gaps where there is no value.
function path(points) {
  let open = false;
  let d = "";
  for (const point of points) {
    if (!point) { open = false; continue; }
    d += `${open ? "L" : "M"}${point[0].toFixed(2)} ${point[1].toFixed(2)}`;
    open = true;
  }
  return d;
}

function spoken(series, x) {
  return series.map((each) => {
    if (each.level !== undefined) return `${each.name}: ${number(each.level ?? Infinity)} throughout`;
    const there = finite(each.y);
    if (!there.length) return `${each.name}: nothing to show`;
    const least = Math.min(...there);
    const at = each.x[each.y.indexOf(least)];
    return `${each.name}: ${there.length} points, least ${number(least)} at ${x.label} ${at}`;
  }).join(". ") + ". Arrow keys read the values.";
}

// A line under the pointer, moved by the mouse, a finger or the arrow keys, and what is there.
function follow({ node, holder, series, axes, box, x }) {
  const places = [...new Set(series.flatMap((each) => each.x ?? []))].sort((a, b) => a - b);
  if (!places.length) return;
  const line = s("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  node.append(line);
  const tip = h("div", { className: "tip", hidden: true });
  holder.append(tip);
  let now = -1;
  const show = (i, aloud) => {
    now = Math.min(Math.max(i, 0), places.length - 1);
    const at = axes.x.at(places[now]);
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    line.setAttribute("visibility", "visible");
    const rows = valuesAt(series, places[now]);
    const head = `${x.label} ${x.names?.[now] ?? places[now].toLocaleString("en")}`;
    tip.replaceChildren(h("strong", {}, head), ...rows.map(([name, value, className]) =>
      h("div", { className: `tip-row ${className}` }, h("i", {}), `${name}: ${value}`)));
    tip.hidden = false;
    const share = at / node.viewBox.baseVal.width;
    tip.classList.toggle("left", share > 0.55);
    const wide = holder.clientWidth;
    tip.style.left = share > 0.55 ? "auto" : `${share * wide + 12}px`;
    tip.style.right = share > 0.55 ? `${(1 - share) * wide + 12}px` : "auto";
    if (aloud) say(`${head}. ${rows.map(([name, value]) => `${name} ${value}`).join(", ")}`);
  };
  const hide = () => { tip.hidden = true; line.setAttribute("visibility", "hidden"); };
  node.addEventListener("pointermove", (event) => {
    const seen = node.getBoundingClientRect();
    const at = ((event.clientX - seen.left) / seen.width) * node.viewBox.baseVal.width;
    const off = places.map((place) => Math.abs(axes.x.at(place) - at));
    show(off.indexOf(Math.min(...off)), false);
  });
  node.addEventListener("pointerleave", hide);
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Escape") hide();
    if (step === undefined) return;
    event.preventDefault();
    show(now + step, true);
  });
}

function valuesAt(series, place) {
  const rows = [];
  for (const each of series) {
    if (each.silent) continue;
    if (each.level !== undefined) {
      rows.push([each.name, number(each.level ?? Infinity), each.className]);
      continue;
    }
    const i = each.x.indexOf(place);
    if (i < 0) continue;
    const error = each.stderr?.[i] ? ` ± ${number(each.stderr[i])}` : "";
    const note = each.notes?.[i] ? ` (${each.notes[i]})` : "";
    rows.push([each.name, `${number(each.y[i] ?? Infinity)}${error}${note}`, each.className]);
  }
  return rows;
}
