// A simulation that runs in the background, with its progress and a button that stops it.
import { ask, Refused } from "./api.js";
import { fresh, h, say } from "./dom.js";
import { whole } from "./format.js";
import { get, set } from "./state.js";

const EVERY = 300; // ms between looks
const TRIALS = [10, 50, 200, 1000];

// kind: "points" or "rounds"; wish(): what to simulate; show(results): draws them.
export function simulation({ kind, label, wish, show }) {
  const id = fresh("trials");
  const trials = h("select", { id });
  const start = h("button", { type: "button", className: "strong" }, label);
  const stop = h("button", { type: "button", hidden: true }, "Stop");
  const bar = h("progress", { max: 1, value: 0, hidden: true, ariaLabel: "Simulation" });
  const note = h("span", { className: "note" });
  const node = h("div", { className: "simulation" }, start, stop, h("label", { htmlFor: id }, "trials"), trials, bar, note);
  let name = null;
  let ticket = 0;
  let options = ""; // of the command that simulates what is shown

  // The address may ask for another number of trials: it is one to choose then.
  function fill(count) {
    const all = [...new Set([...TRIALS, count])].sort((a, b) => a - b);
    trials.replaceChildren(...all.map((n) => h("option", { value: n }, String(n))));
    trials.value = String(count);
  }

  function asked() {
    const { trials: count, seed } = get();
    return JSON.stringify({ ...wish(), kind, trials: count, seed });
  }

  async function run() {
    const own = (ticket += 1);
    await halt();
    show([]);
    try {
      fill(get().trials);
      const answer = await ask("/api/simulations", { method: "POST", body: asked() });
      if (own !== ticket) { // something newer was asked for meanwhile
        await ask(`/api/simulations/${answer.id}`, { method: "DELETE" });
        return;
      }
      name = answer.id;
      running(true);
      note.textContent = "starting ...";
      await watch(own);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      running(false);
      note.textContent = error.message;
      say(error.message);
    }
  }

  async function watch(own) {
    while (own === ticket) {
      const job = await ask(`/api/simulations/${name}`);
      if (own !== ticket) return;
      bar.value = job.done / job.total;
      bar.textContent = `${Math.round(100 * bar.value)} %`;
      options = job.options;
      if (job.results.length) show(job.results);
      const left = job.left_out.length ? `; too large here: ${job.left_out.join(", ")} nodes` : "";
      note.textContent = `${whole(job.done)} of ${whole(job.total)} trials${left}`;
      if (job.state !== "running") {
        running(false);
        note.textContent = `${job.state === "done" ? "done" : job.why || "stopped"}: ${note.textContent}`;
        say(note.textContent);
        name = null;
        return;
      }
      await new Promise((done) => setTimeout(done, EVERY));
    }
  }

  function running(yes) {
    stop.hidden = bar.hidden = !yes;
    start.hidden = yes;
  }

  async function halt() {
    const old = name;
    name = null;
    if (old) await ask(`/api/simulations/${old}`, { method: "DELETE" }).catch(() => {});
  }

  start.addEventListener("click", () => {
    set({ trials: Number(trials.value), sim: kind });
    run();
  });
  stop.addEventListener("click", async () => {
    if (name) await ask(`/api/simulations/${name}`, { method: "DELETE" }).catch(() => {});
    set({ sim: "" });
    start.focus();
  });
  // Nobody can stop it when the page is gone.
  addEventListener("pagehide", () => {
    if (name) fetch(`/api/simulations/${name}`, { method: "DELETE", keepalive: true }).catch(() => {});
  });
  fill(get().trials);
  return {
    node,
    run,
    options: () => options,
    // The stream has changed: what runs is of no use any more.
    reset() {
      ticket += 1;
      halt();
      running(false);
      note.textContent = "";
      show([]);
    },
  };
}
