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

// Short, for axes: 1k, 2.5M, 0.001.
export function tick(x) {
  const size = Math.abs(x);
  if (size >= 1e9) return `${Number((x / 1e9).toPrecision(3))}G`;
  if (size >= 1e6) return `${Number((x / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((x / 1e3).toPrecision(3))}k`;
  if (size !== 0 && size < 1e-3) return x.toExponential(0);
  return String(Number(x.toPrecision(4)));
}
