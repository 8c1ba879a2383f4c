// A picture with its title, legend, numbers, the command behind it, and the ways to save it.
import { fresh, h, say } from "./dom.js";
import { number } from "./format.js";
import { saveFigure } from "./save.js";
import { table } from "./table.js";

const FEW_ROWS = 400; // of the numbers that are shown; files have all

// A command with a button that copies it.
export function commandLine() {
  const code = h("code", {});
  const copy = h("button", { type: "button", className: "quiet", ariaLabel: "Copy the command" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent).catch(() => {
      getSelection().selectAllChildren(code);
    });
    say("The command is copied");
  });
  const node = h("div", { className: "command", hidden: true }, code, copy);
  const show = (text) => { // lines break between words, not within --options
    const words = text.split(" ").map((word) => h("span", {}, word));
    code.replaceChildren(...words.flatMap((word, i) => (i ? [" ", word] : [word])));
    node.hidden = !text;
  };
  return { node, show };
}

// spec: {title, name, draw(width) -> holder, legend, columns, rows, command, note}
export function figure(heading = "h3") {
  const id = fresh("figure");
  const title = h(heading, { id });
  const note = h("p", { className: "figure-note", hidden: true });
  const legend = h("ul", { className: "legend" });
  const body = h("div", { className: "figure-body" });
  const numbers = h("details", { className: "numbers" }, h("summary", {}, "Numbers"));
  const command = commandLine();
  const buttons = ["svg", "png", "csv"].map((kind) => h("button", {
    type: "button", className: "quiet", ariaLabel: `Save as ${kind.toUpperCase()}`,
    onclick: async () => {
      const node = body.querySelector("svg");
      await saveFigure(kind, { ...spec, node, legend });
      say(`${spec.name}.${kind} is saved`);
    },
  }, kind.toUpperCase()));
  const node = h("figure", { className: "figure" },
    h("div", { className: "figure-head" }, title,
      h("div", { className: "save", role: "group", ariaLabel: "Save this figure" },
        h("span", { ariaHidden: "true" }, "Save"), buttons)),
    note, legend, body,
    h("figcaption", {}, command.node, numbers));
  node.setAttribute("aria-labelledby", id);
  let spec = null;
  let width = 0;
  const draw = () => {
    if (!spec || !width) return;
    const read = body.contains(document.activeElement); // by keys: who reads goes on reading
    body.replaceChildren(spec.draw(width));
    if (read) body.querySelector("svg")?.focus({ preventScroll: true });
  };
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now === width || !now) return;
    width = now;
    draw();
  }).observe(body);
  numbers.addEventListener("toggle", () => fillNumbers());
  const fillNumbers = () => {
    if (!numbers.open || !spec) return;
    const shown = spec.rows.slice(0, FEW_ROWS);
    const rows = shown.map((row) => Object.fromEntries(row.map((value, i) => [i, value])));
    const columns = spec.columns.map((name, i) => ({
      name, key: i, text: shown.some((row) => typeof row[i] === "string"),
      show: (value) => (typeof value === "number" && !Number.isInteger(value) ? number(value) : String(value ?? "–")),
    }));
    const caption = spec.rows.length > FEW_ROWS ? `First ${FEW_ROWS} of ${spec.rows.length} rows` : spec.title;
    numbers.replaceChildren(numbers.firstChild, table({ caption, columns, rows }));
  };
  return {
    node,
    update(next) {
      spec = next;
      title.textContent = next.title;
      note.textContent = next.note ?? "";
      note.hidden = !next.note;
      command.show(next.command);
      legend.replaceChildren(...(next.legend ?? []).map(([name, className]) =>
        h("li", { className }, h("i", {}), name)));
      draw();
      fillNumbers();
    },
  };
}
