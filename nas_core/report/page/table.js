// All rows as a table that is sorted, filtered and walked through with keys.
const FIRST = 300; // rows that are written at once; a button shows the others
const place = document.getElementById("rows");
const columns = !points ? [] : [
  { id: "place", title: "no.", text: (index) => String(index + 1), value: (index) => index, numeric: true },
  { id: "key", title: points.noun, text: (index) => titleOf(rows[index]), value: (index) => titleOf(rows[index]) },
  ...points.fields.map((field, at) => ({
    id: "field" + at,
    title: field.title + (field.unit ? " (" + field.unit + ")" : ""),
    text: (index) => valueText(rows[index].values[at], field, false) || "-",
    value: (index) => rows[index].values[at] ?? null,
    numeric: rows.some((row) => typeof row.values[at] === "number"),
  })),
];
let order = [];
let most = FIRST;
const lines = new Map();

const sorted = () => {
  const column = columns.find((one) => one.id === state.sort.column) || columns[0];
  const sign = state.sort.down ? -1 : 1;
  const compare = (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a - b; // what is missing comes last
    return (x < y ? -sign : x > y ? sign : 0) || a - b;
  };
  return rows.map((_, index) => index).filter(passes).sort(compare);
};

const parts = !place ? null : (() => {
  const search = element("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    state.text = search.value.trim();
    changed("filter");
  });
  const reset = button("Show all", () => {
    state.text = search.value = "";
    state.ranges.clear();
    changed("reset");
    changed("filter");
  }, { id: "reset" });
  const heads = columns.map((column) => {
    const head = element("th", { scope: "col", class: column.numeric ? "number" : null, "aria-sort": "none" },
      button(column.title, () => {
        const again = state.sort.column === column.id;
        state.sort = { column: column.id, down: again ? !state.sort.down : false };
        changed("sort");
      }, { id: "sort-" + column.id }));
    return head;
  });
  const body = element("tbody");
  const count = element("p", { role: "status", id: "count" });
  const more = button("Show more", () => {
    most += FIRST;
    fillTable();
  }, { id: "more" });
  const table = element("table", { role: "grid", "aria-labelledby": "all" },
    element("thead", {}, element("tr", {}, ...heads)), body);
  place.append(
    element("div", { class: "tools" }, element("label", { for: "filter" }, "Filter"), search, reset, count),
    element("div", { class: "scroll rows" }, table), more,
    element("p", { class: "note" }, "Arrow keys, Home and End walk through the rows, Shift+Enter keeps one for" +
      " comparison, a column's head sorts by it. The filter takes words that a row must have."));
  return { search, reset, heads, body, count, more };
})();

const lineOf = (index) => {
  if (!lines.has(index)) {
    const line = element("tr", { "data-row": index, tabindex: "-1" }, ...columns.map((column) =>
      element("td", { class: column.numeric ? "number" : null }, column.text(index))));
    lines.set(index, line);
  }
  return lines.get(index);
};

const fillTable = () => {
  order = sorted();
  const kept = document.activeElement && document.activeElement.closest && document.activeElement.closest("#rows tr[data-row]");
  parts.heads.forEach((head, at) => {
    const own = columns[at].id === state.sort.column;
    head.setAttribute("aria-sort", own ? (state.sort.down ? "descending" : "ascending") : "none");
  });
  parts.body.replaceChildren(...order.slice(0, most).map(lineOf));
  if (kept && kept.isConnected) kept.focus({ preventScroll: true });
  parts.more.hidden = order.length <= most;
  parts.count.textContent = (order.length === rows.length ? "" : order.length + " of ") + rows.length + " " +
    points.noun + (rows.length === 1 ? "" : "s");
  parts.reset.disabled = !filtering();
  mark();
};

// The selected row is marked, and one row, that or the first, is where Tab comes to.
const mark = () => {
  const here = order.indexOf(state.selected);
  lines.forEach((line, index) => {
    line.setAttribute("aria-selected", String(index === state.selected));
    line.classList.toggle("pinned", index === state.pinned);
    line.tabIndex = -1;
  });
  const first = here >= 0 && here < most ? order[here] : order[0];
  if (first !== undefined && lines.has(first)) lines.get(first).tabIndex = 0;
};

// Scroll the table alone, never the page.
const reveal = (index) => {
  const line = lines.get(index);
  if (!line || !line.isConnected) return;
  const frame = line.closest(".rows");
  const head = frame.querySelector("thead").offsetHeight;
  const top = line.offsetTop - head;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (line.offsetTop + line.offsetHeight > frame.scrollTop + frame.clientHeight)
    frame.scrollTop = line.offsetTop + line.offsetHeight - frame.clientHeight;
};

const walk = (event) => {
  const line = event.target.closest("tr[data-row]");
  if (!line) return;
  const at = order.indexOf(Number(line.dataset.row));
  const last = Math.min(order.length, most) - 1;
  const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last, PageDown: at + 10, PageUp: at - 10 };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (event.shiftKey) pin(state.pinned === order[at] ? null : order[at]);
    else select(order[at]);
  } else if (event.key in steps) {
    event.preventDefault();
    const next = order[Math.max(0, Math.min(last, steps[event.key]))];
    select(next);
    lines.get(next).focus({ preventScroll: true });
    reveal(next);
  }
};

if (place) {
  parts.body.addEventListener("keydown", walk);
  parts.body.addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-row]");
    if (line) select(Number(line.dataset.row));
  });
  listeners.push((what) => {
    if (what === "selected") {
      const at = order.indexOf(state.selected);
      if (at >= most) {
        most = at + 1;
        fillTable();
      }
      mark();
      reveal(state.selected);
    } else if (what === "filter" || what === "sort") fillTable();
  });
}
