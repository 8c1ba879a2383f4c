// From values to pixels, and the ticks between.
export function linear([low, high], [from, to], whole = false) {
  if (high === low) [low, high] = [low - 0.5, low + 0.5];
  const at = (x) => from + ((x - low) / (high - low)) * (to - from);
  return { at, ticks: (count) => steps(low, high, count, whole), kind: "linear" };
}

export function log([low, high], [from, to], base = 10) {
  if (high <= low) high = low * base;
  const a = Math.log(low);
  const b = Math.log(high);
  const at = (x) => from + ((Math.log(Math.max(x, 1e-300)) - a) / (b - a)) * (to - from);
  return { at, ticks: (count) => powers(low, high, base, count), kind: "log" };
}

// whole: of things that are counted, there is nothing between 2 and 3.
function steps(low, high, count, whole = false) {
  const rough = Math.max((high - low) / Math.max(count, 1), whole ? 1 : 0);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * unit).find((x) => x >= rough * 0.999 && (!whole || Number.isInteger(x)));
  const out = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) {
    out.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  }
  return out;
}

function powers(low, high, base, count) {
  const from = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const to = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  if (to - from < 2 && base === 10) { // within two decades: 1, 2, 5
    const out = [];
    for (let e = from - 1; e <= to + 1; e += 1) {
      for (const m of [1, 2, 3, 5]) {
        const x = m * 10 ** e;
        if (x >= low * 0.999 && x <= high * 1.001) out.push(x);
      }
    }
    return out.length > 1 ? out : steps(low, high, count);
  }
  const every = Math.max(1, Math.ceil((to - from + 1) / Math.max(count, 2)));
  const out = [];
  for (let e = from; e <= to; e += every) out.push(base ** e);
  return out;
}
