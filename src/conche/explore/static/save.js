// A figure as a file: SVG, PNG or CSV, each with the command that reproduces it.
import { s } from "./dom.js";

const ROOM = 14; // pixels at the sides, and around the legend
const COPIED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "visibility",
];

// The SVG with its styles and the legend inside, so that it looks and reads the same anywhere.
function standalone(node, legend, command) {
  const copy = node.cloneNode(true);
  const [from, to] = [node.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((each, i) => {
    const style = getComputedStyle(each);
    for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  copy.removeAttribute("class");
  copy.querySelectorAll('[visibility="hidden"]').forEach((each) => each.remove());
  const own = node.viewBox.baseVal;
  const above = ROOM + (legend.children.length ? legend.offsetHeight + ROOM : 0);
  const [width, height] = [own.width + 2 * ROOM, own.height + above];
  copy.setAttribute("viewBox", `${-ROOM} ${-above} ${width} ${height}`);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const about = document.createElementNS(copy.namespaceURI, "desc");
  about.textContent = command;
  const paper = s("rect", { x: -ROOM, y: -above, width, height, fill: getComputedStyle(document.body).backgroundColor });
  copy.prepend(about, paper);
  copy.append(drawLegend(legend, ROOM - above));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

// Every entry where the page has it.
function drawLegend(legend, top) {
  const all = legend.getBoundingClientRect();
  return s("g", { transform: `translate(0 ${top})` }, [...legend.children].map((entry) => {
    const style = getComputedStyle(entry);
    const mark = entry.firstElementChild.getBoundingClientRect();
    const middle = mark.top + mark.height / 2 - all.top;
    const at = { x: mark.left - all.left, y: middle - mark.height / 2, width: mark.width, height: mark.height };
    const text = { x: at.x + at.width + 7, y: middle + 4.5, fill: style.color, "font-size": style.fontSize, "font-family": style.fontFamily };
    return [drawMark(getComputedStyle(entry.firstElementChild), at), s("text", text, entry.textContent)];
  }));
}

function drawMark(style, { x, y, width, height }) {
  const colour = style.borderTopColor;
  if (style.borderTopStyle === "none") return s("rect", { x, y, width, height, rx: 3, fill: style.backgroundColor, opacity: style.opacity });
  if (height > 4) return s("circle", { cx: x + width / 2, cy: y + height / 2, r: width / 2 - 1, fill: "none", stroke: colour, "stroke-width": 2 });
  const dash = { dashed: "7 5", dotted: "3 3" }[style.borderTopStyle];
  return s("line", { x1: x, x2: x + width, y1: y + 1.5, y2: y + 1.5, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash });
}

export function csv(columns, rows, command) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // no formulas
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns, ...rows].map((row) => row.map(cell).join(","));
  return `# ${command.replaceAll(/[\r\n]+/g, " ")}\n${lines.join("\n")}\n`;
}

function download(name, data, type) {
  const address = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function saveFigure(kind, { node, legend, name, command, columns, rows }) {
  if (kind === "csv") {
    download(`${name}.csv`, csv(columns, rows, command), "text/csv");
    return;
  }
  const drawn = standalone(node, legend, command);
  if (kind === "svg") {
    download(`${name}.svg`, drawn.text, "image/svg+xml");
    return;
  }
  download(`${name}.png`, withText(await pixels(drawn), command), "image/png");
}

async function pixels({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  return new Uint8Array(await blob.arrayBuffer());
}

// A comment in a chunk of text behind PNG's first chunk, which always is 33 bytes from the start.
function withText(png, text) {
  const body = new TextEncoder().encode(`iTXtComment\0\0\0\0\0${text}`); // plain, of no language
  const chunk = new Uint8Array(body.length + 8);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, body.length - 4);
  chunk.set(body, 4);
  view.setUint32(body.length + 4, checksum(body));
  const out = new Uint8Array(png.length + chunk.length);
  out.set(png.subarray(0, 33));
  out.set(chunk, 33);
  out.set(png.subarray(33), 33 + chunk.length);
  return out;
}

function checksum(data) {
  let crc = 0xffffffff;
  for (const byte of data) {
    crc ^= byte;
    for (let k = 0; k < 8; k += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
