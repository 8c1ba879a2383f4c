// A figure as a file: SVG, PNG or CSV, each with the command that reproduces it.
const COPIED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "visibility",
];

// The SVG with its styles inside, so that it looks the same anywhere.
function standalone(node, command) {
  const copy = node.cloneNode(true);
  const [from, to] = [node.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((each, i) => {
    const style = getComputedStyle(each);
    for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  copy.removeAttribute("class");
  copy.querySelectorAll('[visibility="hidden"]').forEach((each) => each.remove());
  const { width, height } = node.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const about = document.createElementNS(copy.namespaceURI, "desc");
  about.textContent = command;
  const paper = document.createElementNS(copy.namespaceURI, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(about, paper);
  return new XMLSerializer().serializeToString(copy);
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

export async function saveFigure(kind, { node, name, command, columns, rows }) {
  if (kind === "csv") {
    download(`${name}.csv`, csv(columns, rows, command), "text/csv");
    return;
  }
  const text = standalone(node, command);
  if (kind === "svg") {
    download(`${name}.svg`, text, "image/svg+xml");
    return;
  }
  download(`${name}.png`, withText(await pixels(text, node), command), "image/png");
}

async function pixels(text, node) {
  const { width, height } = node.viewBox.baseVal;
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
