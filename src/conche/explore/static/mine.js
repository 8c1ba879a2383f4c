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
  let ticket = 0;

  function fail(why) {
    failed.textContent = why;
    failed.hidden = false;
  }

  // Shows what comes, unless something newer was asked for meanwhile.
  async function look(work) {
    const own = (ticket += 1);
    failed.hidden = true;
    place.replaceChildren(h("p", { className: "note busy" }, "Reading ..."));
    try {
      const data = await work();
      if (own !== ticket) return;
      place.replaceChildren();
      if (!data.none) {
        place.replaceChildren(modelView(data));
        say(`${data.file}: ${data.class}, ${data.tasks} tasks`);
      }
      drop.classList.toggle("small", !data.none);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (own !== ticket) return;
      place.replaceChildren();
      fail(error.message);
    }
  }

  function take(file) {
    if (!file) return;
    if (file.size > LARGEST) {
      fail(`${file.name}: larger than ${LARGEST / 2 ** 20} MB; conche explore ${file.name} reads it`);
      return;
    }
    look(async () => ask(`/api/model?name=${encodeURIComponent(file.name)}`, { method: "POST", body: await bytesOf(file) }));
  }

  input.addEventListener("change", () => {
    take(input.files[0]);
    input.value = ""; // so that the same file, trained on, may be chosen again
  });
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

// Folders are dropped as files that cannot be read.
async function bytesOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Refused(`${file.name}: cannot be read; a folder of tasks is for the command line: conche explore ${file.name} --target COLUMN`);
  }
}
