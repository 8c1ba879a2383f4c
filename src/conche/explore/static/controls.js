// Sliders with a field beside them; a slider of sizes moves by factors.
import { fresh, h } from "./dom.js";
import { get, listen, set } from "./state.js";

const STEPS = 400;
export const STREAM = ["p", "n", "T", "shared", "noise", "rounds"];
const SLIDERS = {
  p: { name: "Columns", symbol: "p", low: 2, high: 1e7, most: 1e9, whole: true },
  n: { name: "Samples a task", symbol: "n", low: 2, high: 1e5, most: 1e7, whole: true },
  T: { name: "Tasks", symbol: "T", low: 1, high: 1000, most: 2000, whole: true },
  shared: { name: "Shared unknowns", symbol: "p_S", share: true, whole: true },
  noise: { name: "Noise variance", symbol: "σ²", low: 1e-4, high: 10, most: 1e6, zero: true },
  rounds: { name: "Rounds a task", symbol: "T_c", low: 1, high: 32, most: 64, whole: true },
};

export function controls() {
  const rows = STREAM.map((key) => row(key, SLIDERS[key]));
  const again = h("button", { type: "button", className: "quiet", onclick: () => set({ p: 1024, n: 2048, T: 16, shared: 768, noise: 0.01, rounds: 1 }) }, "The paper’s values");
  return h("form", { className: "controls panel", ariaLabel: "The stream", onsubmit: (event) => event.preventDefault() },
    h("h2", {}, "The stream"), rows.map((each) => each.node), again);
}

function row(key, spec) {
  const id = fresh(key);
  const places = spec.share ? linearPlaces() : logPlaces(spec);
  const field = h("input", { id, type: "number", inputMode: "decimal", min: spec.zero || spec.share ? 0 : 1, max: spec.most ?? null, step: spec.whole ? 1 : "any", autocomplete: "off" });
  const slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, ariaLabel: spec.name });
  const [stem, below] = spec.symbol.split("_");
  const node = h("div", { className: "control" },
    h("label", { htmlFor: id }, spec.name, " ", h("i", {}, stem, below ? h("sub", {}, below) : null)), field, slider);
  const fill = (state) => {
    if (document.activeElement !== field) field.value = plain(state[key]);
    const at = Math.round(places.place(state[key], state));
    if (Number(slider.value) !== at && !moving) slider.value = at;
    slider.setAttribute("aria-valuetext", plain(state[key]));
  };
  let moving = false;
  slider.addEventListener("input", () => {
    moving = true;
    set({ [key]: places.value(Number(slider.value), get()) }, { quiet: true });
  });
  slider.addEventListener("change", () => {
    moving = false;
    set({ [key]: get()[key] });
  });
  field.addEventListener("change", () => {
    const value = Number(field.value);
    const wrong = field.value.trim() === "" || !field.checkValidity();
    field.toggleAttribute("aria-invalid", wrong);
    if (wrong) field.reportValidity();
    else set({ [key]: value });
  });
  field.addEventListener("blur", () => fill(get()));
  listen(fill);
  fill(get());
  return { node };
}

function plain(value) {
  return String(Number(Number(value).toPrecision(10)));
}

function logPlaces({ low, high, whole, zero }) {
  const ratio = Math.log(high / low);
  return {
    value: (at) => {
      if (zero && at === 0) return 0;
      const x = low * Math.exp((at / STEPS) * ratio);
      return whole ? round(x) : Number(x.toPrecision(2));
    },
    place: (x) => (x <= low ? 0 : Math.min(Math.log(x / low) / ratio, 1) * STEPS),
  };
}

// Numbers that people would choose: three digits are enough.
function round(x) {
  return x < 1000 ? Math.round(x) : Number(x.toPrecision(3));
}

function linearPlaces() {
  return {
    value: (at, state) => Math.round((at / STEPS) * state.p),
    place: (x, state) => (x / state.p) * STEPS,
  };
}
