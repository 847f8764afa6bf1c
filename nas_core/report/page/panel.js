// What is selected in full: values, drawing, genes; beside it the row that is kept for comparison.
const layerTables = (row) =>
  Object.entries(sidesOf(row)).map(([side, genes]) => {
    const names = Object.keys(genes);
    const depth = Math.max(...names.map((name) => genes[name].length));
    const head = [(side ? side + " " : "") + "layer", ...names].map((text) => element("th", { scope: "col" }, text));
    const lines = Array.from({ length: depth }, (_, place) =>
      element("tr", {}, element("th", { scope: "row" }, String(place + 1)), ...names.map((name) =>
        element("td", {}, place < genes[name].length ? String(genes[name][place]) : "-"))));
    return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": side + " layers" },
      element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...lines)));
  });

const differences = (row, other) =>
  shownGenes(row).filter((name) => other.genes && shownValue(row.genes[name]) !== shownValue(other.genes[name] ?? ""));

const card = (index, what) => {
  const row = rows[index];
  const genes = row.genes || {};
  const names = shownGenes(row);
  const single = names.filter((name) => !Array.isArray(genes[name])).map((name) => [name, shownValue(genes[name])]);
  const fixed = Object.keys(genes).filter((name) => !names.includes(name)).sort();
  const noun = points.noun.charAt(0).toUpperCase() + points.noun.slice(1);
  const tables = layerTables(row);
  const live = element("div", { class: "told", "aria-live": "polite" },
    element("h3", {}, what + noun + " " + titleOf(row)),
    ...(row.about || []).map((text) => element("p", {}, text)),
    pairs(told(row).concat(row.facts || [])));
  return [live, element("div", { class: "columns" },
    drawing(row),
    single.length ? pairs(single) : null,
    tables.length ? element("details", {}, element("summary", {}, "Layers as a table"), ...tables) : null,
    fixed.length ? element("details", {}, element("summary", {}, "Fixed by the space"),
      pairs(fixed.map((name) => [name, shownValue(genes[name])]))) : null,
    row.genes && points.file.summary ? element("details", {}, element("summary", {}, points.file.summary),
      element("pre", {}, JSON.stringify({ ...points.file.head, genes }))) : null)];
};

const panel = document.getElementById("architecture");
const slots = panel ? [0, 1].map(() => element("div", { class: "card" })) : [];
const tools = element("div", { class: "tools" });
if (panel) panel.append(element("div", { class: "cards" }, ...slots), tools);

// The parts that are read out stay in the page and get new content: that is what screen readers notice.
const fill = (slot, index, what) => {
  const [live, rest] = card(index, what);
  const there = slot.querySelector(".told");
  if (there) {
    there.replaceChildren(...live.childNodes);
    slot.replaceChildren(there, rest);
  } else slot.replaceChildren(live, rest);
};

const showSelected = () => {
  const { selected, pinned } = state;
  if (!panel || selected === null) return;
  const both = pinned !== null && pinned !== selected;
  panel.dataset.number = selected;
  fill(slots[0], selected, "");
  slots[1].hidden = !both;
  if (both) fill(slots[1], pinned, "Compared with: ");
  else slots[1].replaceChildren();
  const different = both ? differences(rows[selected], rows[pinned]) : [];
  const focused = tools.contains(document.activeElement);
  tools.replaceChildren(...[
    pinned === null
      ? button("Keep for comparison", () => pin(selected), { id: "pin" })
      : button("Stop comparing", () => pin(null), { id: "pin" }),
    !both || !shownGenes(rows[selected]).length ? null :
      element("p", {}, different.length ? "Different: " + different.join(", ") + "." : "The genes are the same."),
    pinned === selected ? element("p", {}, "Kept. Select another to see both side by side.") : null,
  ].filter(Boolean));
  if (focused) document.getElementById("pin").focus({ preventScroll: true });
};
listeners.push((what) => {
  if (what === "selected") showSelected();
});
