// The page: three views, one of which is shown; the address says which.
import { controls } from "./controls.js";
import { h } from "./dom.js";
import { mineView } from "./mine.js";
import { nodesView } from "./nodes.js";
import { address, get, listen, set } from "./state.js";
import { tasksView } from "./tasks.js";

const MAKE = { nodes: nodesView, tasks: tasksView, model: mineView };
const TITLES = { nodes: "Nodes", tasks: "Tasks", model: "Your model" };
const made = {};
let shown = null;
const place = document.getElementById("view");
const side = controls();
const stage = h("div", { className: "stage" });

function show(state, change) {
  const { view } = state;
  made[view] ??= MAKE[view]();
  const before = shown;
  if (view !== shown) {
    if (before) made[before].end();
    shown = view;
    document.title = `Conche: ${TITLES[view]}`;
    side.hidden = view === "model";
    place.className = view;
    stage.replaceChildren(made[view].node);
  }
  for (const link of document.querySelectorAll("nav a")) {
    const { view: own } = link.dataset;
    link.href = address({ ...state, view: own, sim: "" });
    if (own === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  made[view].update(state, before === view ? change : null);
}

document.querySelector("nav").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  set({ view: link.dataset.view, sim: "" });
});

// A model may be dropped anywhere: the browser would leave the page for it.
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    made.model?.over(kind === "dragenter" || kind === "dragover");
    if (kind !== "drop") return;
    made.model ??= MAKE.model();
    made.model.take(event.dataTransfer.files[0]);
    if (get().view !== "model") set({ view: "model", sim: "" });
  });
}

const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const wish = localStorage.getItem("conche-theme");
if (wish) document.documentElement.dataset.theme = wish;
theme.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("conche-theme", next);
});

place.replaceChildren(side, stage);
listen(show);
show(get(), null);
