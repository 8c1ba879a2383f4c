// Tables that are sorted by a click, or a key, on a column's head.
import { h } from "./dom.js";

// columns: {name, key, show?, text?}; rows: objects.
export function table({ caption, columns, rows, className = "" }) {
  const body = h("tbody", {});
  const heads = columns.map((column) => {
    const button = h("button", { type: "button" }, column.name);
    const head = h("th", { scope: "col", className: column.text ? "text" : "" }, button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      fill(sorted(rows, column.key, down ? -1 : 1));
    });
    return head;
  });
  const fill = (shown) => body.replaceChildren(...shown.map((row) => h("tr", {},
    columns.map((column, i) => h(i ? "td" : "th", {
      scope: i ? null : "row", className: column.text ? "text" : "",
    }, column.show ? column.show(row[column.key], row) : String(row[column.key] ?? "–"))))));
  fill(rows);
  return h("div", { className: `table-holder ${className}`, tabIndex: 0, role: "region", ariaLabel: caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));
}

function sorted(rows, key, sign) {
  const rank = (value) => (value === null || value === undefined ? Infinity : value);
  return [...rows].sort((a, b) => {
    const [x, y] = [rank(a[key]), rank(b[key])];
    if (typeof x === "string" && typeof y === "string") {
      return sign * x.localeCompare(y, "en", { numeric: true });
    }
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  });
}
