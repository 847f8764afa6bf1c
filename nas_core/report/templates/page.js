(() => {
"use strict";
const read = (id) => {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
};
const node = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...children);
  return made;
};
const points = read("points") || { fields: [], rows: [], genes: [], letters: {} };
const rows = points.rows;
const title = (row) => row.title || row.key;
const text = (value, field) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  const shown = field.digits === null ? String(Number(value.toPrecision(4))) : value.toFixed(field.digits);
  return field.unit ? shown + " " + field.unit : shown;
};
const escaped = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;");

// The selected row and the one it is compared with; both are in the page's address.
const chosen = [null, null];
const plots = [];
const select = (index, place = 0) => {
  chosen[place] = index;
  const keys = ["a", "b"].filter((name, i) => chosen[i] !== null).map((name, i) =>
    name + "=" + encodeURIComponent(rows[chosen[i]].key));
  history.replaceState(null, "", "#" + keys.join("&"));
  showPanel();
  document.querySelectorAll("#rows tr[data-index]").forEach((row) =>
    row.setAttribute("aria-selected", String(chosen.includes(Number(row.dataset.index)))));
  plots.forEach((plot) => Plotly.restyle(plot, { selectedpoints: plot.data.map((trace) => {
    const at = (trace.customdata || []).map((number, i) => (chosen.includes(number) ? i : -1)).filter((i) => i >= 0);
    return at.length ? at : null;
  }) }));
};

// One network, or two side by side: values, facts, and genes with a cell per layer.
const largest = {};
rows.forEach((row) => Object.entries(row.genes || {}).forEach(([name, values]) => [values].flat().forEach((value) => {
  if (typeof value === "number") largest[name] = Math.max(largest[name] || 0, value);
})));
const cells = (name, gene) => [gene].flat().map((value) => {
  const layer = node("span", { class: "layer", title: String(value) }, points.letters[value] ? points.letters[value][1] : String(value));
  if (typeof value === "number") {
    layer.classList.add("number");
    layer.style.setProperty("--share", 100 * Math.max(0, value) / (largest[name] || 1) + "%");
  } else if (points.letters[value]) Object.assign(layer.style, { background: points.letters[value][0], color: "#fff" });
  return layer;
});
const showPanel = () => {
  const panel = document.getElementById("panel");
  const shown = chosen.filter((index) => index !== null).map((index) => rows[index]);
  if (!panel || !shown.length) return;
  const body = node("tbody");
  const line = (name, values, draw) => {
    if (values.every((value) => value === undefined || value === null || value === "")) return;
    const differ = values.length > 1 && JSON.stringify(values[0]) !== JSON.stringify(values[1]);
    body.append(node("tr", {}, node("th", { scope: "row" }, name), ...values.map((value) =>
      node("td", differ ? { class: "differs" } : {}, ...(value === undefined ? [] : draw(value))))));
  };
  points.fields.forEach((field, at) => line(field.title, shown.map((row) => text(row.values[at], field)), (value) => [value]));
  const facts = [...new Set(shown.flatMap((row) => Object.keys(row.facts || {})))];
  facts.forEach((name) => line(name, shown.map((row) => (row.facts || {})[name]), (value) => [String(value)]));
  points.genes.forEach((name) => line(name, shown.map((row) => (row.genes || {})[name]), (value) => cells(name, value)));
  line("note", shown.map((row) => (row.about || []).join(" ")), (value) => [value]);
  const compare = node("button", { type: "button" }, chosen[1] === null ? "Keep for comparison" : "End the comparison");
  compare.addEventListener("click", () => select(chosen[1] === null ? chosen[0] : null, 1));
  const head = node("tr", {}, node("th"), ...shown.map((row) => node("th", {}, title(row))));
  panel.replaceChildren(node("table", {}, node("thead", {}, head), body), node("p", {}, compare));
  if (points.file && shown[0].genes) {
    const file = JSON.stringify({ ...points.file.head, genes: shown[0].genes }, null, 1);
    panel.append(node("details", {}, node("summary", {}, points.file.summary), node("pre", {}, file)));
  }
};

// Tables are sorted by a click on a header; rows of the large one are selected by a click, and filtered by a text.
const sortable = (table) => table.querySelectorAll("thead th").forEach((header, column) => {
  header.addEventListener("click", () => {
    const down = header.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].textContent;
    const compare = (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
    const number = (row) => parseFloat(value(row));
    const sorted = [...table.tBodies[0].rows].sort((a, b) =>
      Number.isNaN(number(a)) || Number.isNaN(number(b)) ? compare(a, b) : number(a) - number(b));
    table.tBodies[0].append(...(down ? sorted.reverse() : sorted));
  });
});
document.querySelectorAll("table.sortable").forEach(sortable);
const place = document.getElementById("rows");
if (place) {
  const body = node("tbody", {}, ...rows.map((row, index) => node("tr", { "data-index": index, tabindex: "0" },
    node("td", {}, title(row)), ...points.fields.map((field, at) =>
      node("td", typeof row.values[at] === "number" ? { class: "number" } : {}, text(row.values[at], field))))));
  const head = node("tr", {}, node("th", {}, points.noun), ...points.fields.map((field) => node("th", {}, field.title)));
  const table = node("table", {}, node("thead", {}, head), body);
  place.append(table);
  sortable(table);
  const pick = (event) => {
    const row = event.target.closest("tr[data-index]");
    if (row && (event.type === "click" || event.key === "Enter")) select(Number(row.dataset.index));
  };
  body.addEventListener("click", pick);
  body.addEventListener("keydown", pick);
  document.getElementById("filter").addEventListener("input", (event) => [...body.rows].forEach((row) => {
    row.hidden = !row.textContent.toLowerCase().includes(event.target.value.toLowerCase());
  }));
}

// Figures: pointing at a point shows its row, a click selects it; colours follow the page's.
const colours = () => {
  const style = getComputedStyle(document.body);
  const [ink, ground] = [style.color, style.backgroundColor];
  return { "font.color": ink, paper_bgcolor: ground, plot_bgcolor: ground, "hoverlabel.bgcolor": ground };
};
document.querySelectorAll(".plot").forEach((plot) => {
  const figure = read(plot.id + "-figure");
  figure.data.forEach((trace) => {
    if (!trace.customdata || !rows.length) return;
    trace.text = trace.text || trace.customdata.map(() => "");
    trace.hoverinfo = "text";
    trace.hovertext = trace.customdata.map((number) => number === null ? "" : [title(rows[number]),
      ...points.fields.map((field, at) => [field.title, text(rows[number].values[at], field)])
        .filter(([, value]) => value).map((pair) => pair.join(": "))].map(escaped).join("<br>"));
    trace.selected = { marker: { size: 15 } };
    trace.unselected = { marker: { opacity: (trace.marker || {}).opacity || 1 } };
  });
  Plotly.newPlot(plot, figure.data, figure.layout, { responsive: true, displaylogo: false }).then(() => {
    plots.push(plot);
    Plotly.relayout(plot, colours());
    plot.on("plotly_click", (event) => {
      const number = event.points[0].customdata;
      if (typeof number === "number") select(number);
    });
  });
});
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.body).backgroundColor === "rgb(21, 25, 30)";
  document.documentElement.style.colorScheme = dark ? "light" : "dark";
  plots.forEach((plot) => Plotly.relayout(plot, colours()));
});
const address = new URLSearchParams(location.hash.slice(1));
["b", "a"].forEach((name) => {
  const index = rows.findIndex((row) => row.key === address.get(name));
  if (index >= 0) select(index, name === "a" ? 0 : 1);
});
if (chosen[0] === null && rows.length) select(points.first || 0);
})();
