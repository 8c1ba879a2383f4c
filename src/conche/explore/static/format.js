// Numbers as people read them; as conche.common.words has them.
export function number(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return "unbounded";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e4 || size < 1e-3) return x.toExponential(2);
  return size >= 100 ? x.toFixed(1) : x.toFixed(3);
}

export function percent(x, signed = false) {
  if (x === null || x === undefined) return "–";
  return `${signed && x > 0 ? "+" : ""}${(100 * x).toFixed(1)} %`;
}

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  for (const [unit, many] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (count >= many) return `${Number((count / many).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(count)} B`;
}

export function seconds(x) {
  if (!x) return "–";
  if (x < 1) return `${Number((1000 * x).toPrecision(2))} ms`;
  return `${Number(x.toPrecision(3))} s`;
}

export function whole(x) {
  return Math.round(x).toLocaleString("en");
}

// As many digits as tell a number from others that are a gap away.
function digits(x, gap) {
  let count = 1;
  while (count < 9 && Math.abs(Number(x.toPrecision(count)) - x) > gap / 100) count += 1;
  return count;
}

// Short, for axes: 1k, 2.5M, 0.001; gap is the distance of the next tick.
export function tick(x, gap) {
  const size = Math.abs(x);
  const count = digits(x, gap);
  if (size >= 1e12 || (size !== 0 && size < 1e-3)) return x.toExponential(count - 1).replace("e+", "e");
  for (const [unit, many] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (size >= Math.max(many, 1e4)) return `${Number((x / many).toPrecision(count))}${unit}`;
  }
  return String(Number(x.toPrecision(count)));
}

export function percentTick(x, gap) {
  return `${Number((100 * x).toPrecision(digits(100 * x, 100 * gap)))} %`;
}
