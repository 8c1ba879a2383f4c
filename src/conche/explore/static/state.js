// Everything that is looked at is in the address: it can be shared, and the back button works.
const DEFAULTS = {
  view: "nodes", p: 1024, n: 2048, T: 16, shared: 768, noise: 0.01, rounds: 1,
  k: "1,8,64", trials: 50, seed: 0, sim: "",
};
const NUMBERS = ["p", "n", "T", "shared", "noise", "rounds", "trials", "seed"];
const QUICK = 900; // ms within which moves of one slider are one step back

let now = read();
let last = { key: "", at: 0 };
const listeners = [];

function read() {
  const given = new URLSearchParams(location.search);
  const state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    if (!given.has(key)) continue;
    const text = given.get(key);
    if (!NUMBERS.includes(key)) state[key] = text;
    else if (text.trim() !== "" && Number.isFinite(Number(text))) state[key] = Number(text);
  }
  if (!["nodes", "tasks", "model"].includes(state.view)) state.view = "nodes";
  state.shared = Math.min(state.shared, state.p);
  return state;
}

export function get() {
  return now;
}

export function address(state) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (String(value) !== String(DEFAULTS[key])) query.set(key, value);
  }
  const text = query.toString().replaceAll("%2C", ",");
  return text ? `?${text}` : location.pathname;
}

// quiet: the address stays as it is for now, as while a slider moves.
export function set(change, { quiet = false } = {}) {
  now = { ...now, sim: "", ...change }; // what was simulated is of no use for another stream
  now.shared = Math.min(now.shared, now.p);
  if (!quiet) {
    const key = Object.keys(change).join();
    const soon = NUMBERS.includes(key) && key === last.key && performance.now() - last.at < QUICK;
    history[soon ? "replaceState" : "pushState"](null, "", address(now));
    last = { key, at: performance.now() };
  }
  for (const each of listeners) each(now, change);
}

export function listen(each) {
  listeners.push(each);
}

addEventListener("popstate", () => {
  now = read();
  last = { key: "", at: 0 };
  for (const each of listeners) each(now, null);
});
