// Your model: the one that was given on the command line, or a file that is dropped in.
import { ask, Refused } from "./api.js";
import { h, say } from "./dom.js";
import { modelView } from "./model.js";

const LARGEST = 64 * 2 ** 20;

export function mineView() {
  const place = h("div", {});
  const failed = h("p", { className: "failed", role: "alert", hidden: true });
  const input = h("input", { type: "file", accept: ".conche", id: "file", className: "visually-hidden" });
  const drop = h("div", { className: "drop" }, input,
    h("p", {}, h("label", { htmlFor: "file", className: "button" }, "Choose a model"), " or drop a .conche file here"),
    h("p", { className: "note" }, "It is read on this machine and kept nowhere. With the command line: conche explore model.conche --stream tests/"));
  const node = h("div", {}, failed, drop, place);
  let asked = false;

  async function look(work) {
    failed.hidden = true;
    place.replaceChildren(h("p", { className: "note busy" }, "Reading ..."));
    try {
      const data = await work();
      place.replaceChildren();
      if (!data.none) {
        place.replaceChildren(modelView(data));
        say(`${data.file}: ${data.class}, ${data.tasks} tasks`);
      }
      drop.classList.toggle("small", !data.none);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      place.replaceChildren();
      failed.textContent = error.message;
      failed.hidden = false;
    }
  }

  function take(file) {
    if (!file) return;
    if (file.size > LARGEST) {
      failed.textContent = `${file.name}: larger than ${LARGEST / 2 ** 20} MB; conche explore ${file.name} reads it`;
      failed.hidden = false;
      return;
    }
    look(async () => ask(`/api/model?name=${encodeURIComponent(file.name)}`, { method: "POST", body: await file.arrayBuffer() }));
  }

  input.addEventListener("change", () => take(input.files[0]));
  return {
    node,
    // A file is over the page, or has left it.
    over(yes) { drop.classList.toggle("over", yes); },
    take(file) { asked = true; take(file); },
    update() {
      if (asked) return;
      asked = true;
      look(() => ask("/api/model"));
    },
    end() {},
  };
}
