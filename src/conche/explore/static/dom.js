// Elements with attributes and children, in one call.
const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && !(node instanceof SVGElement) && key !== "list") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export function h(tag, attributes, ...children) {
  return make(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return make(document.createElementNS(SVG, tag), attributes, children);
}

// What screen readers hear when something has changed by itself.
export function say(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}

let last = 0;
export function fresh(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}
