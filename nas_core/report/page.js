// Draws a page's figures and shows the architecture behind a point. Reads only what the page itself holds.
"use strict";
(() => {
  const read = (id) => {
    const found = document.getElementById(id);
    return found ? JSON.parse(found.textContent) : null;
  };
  const points = read("points");
  const rows = points ? points.rows : [];
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const number = (value, digits) =>
    digits === null ? String(Number(value.toPrecision(4))) : value.toFixed(digits);
  const told = (row) =>
    points.metrics
      .map((metric, place) => [metric, row.metrics[place]])
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([metric, value]) => [metric.title, number(value, metric.digits) + (metric.unit ? " " + metric.unit : "")])
      .concat(row.measured_ms === undefined ? [] : [["measured latency", row.measured_ms.toFixed(2) + " ms"]]);
  const shown = (value) => (Array.isArray(value) ? value.join("/") : String(value));
  const searched = (row) => points.searched.filter((name) => name in row.genes);

  const hover = (index) => {
    const row = rows[index];
    const lines = told(row).map(([title, value]) => escaped(title) + ": <b>" + escaped(value) + "</b>");
    const genes = searched(row).map((name) => escaped(name + " " + shown(row.genes[name])));
    const kept = genes.slice(0, 14).concat(genes.length > 14 ? ["…"] : []);
    const head = [row.run, row.search].filter(Boolean).map(escaped).join(", ");
    return ["<b>" + escaped(row.key) + "</b> " + head].concat(lines, kept).join("<br>");
  };

  const element = (name, text, children) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    (children || []).forEach((child) => made.appendChild(child));
    return made;
  };
  const pairs = (list) => element("dl", null, list.flatMap(([a, b]) => [element("dt", a), element("dd", b)]));
  const line = (kind, cells) => element("tr", null, cells.map((cell) => element(kind, cell)));

  // Genes with a value per layer: a table for each side of the network.
  const layers = (row, names) => {
    const sides = new Map();
    names.filter((name) => Array.isArray(row.genes[name])).forEach((name) => {
      const dot = name.lastIndexOf(".");
      const side = name.slice(0, Math.max(dot, 0));
      sides.set(side, (sides.get(side) || []).concat([[name.slice(dot + 1), row.genes[name]]]));
    });
    return [...sides].map(([side, genes]) => {
      const depth = Math.max(...genes.map(([, values]) => values.length));
      const head = line("th", [(side ? side + " " : "") + "layer"].concat(genes.map(([name]) => name)));
      const body = Array.from({ length: depth }, (_, place) =>
        line("td", [place + 1].concat(genes.map(([, values]) => (place < values.length ? values[place] : "-")))));
      return element("table", null, [element("thead", null, [head]), element("tbody", null, body)]);
    });
  };

  const show = (index) => {
    const panel = document.getElementById("architecture");
    const row = rows[index];
    if (!panel || !row) return;
    panel.replaceChildren();
    panel.dataset.number = index;
    panel.appendChild(element("h3", "Architecture " + row.key));
    const about = [row.run, row.search && "evaluated by: " + row.search, row.best_of && "best of: " + row.best_of];
    panel.appendChild(element("p", about.concat([row.error]).filter(Boolean).join("; ")));
    const names = searched(row);
    const single = names.filter((name) => !Array.isArray(row.genes[name])).map((name) => [name, shown(row.genes[name])]);
    const fixed = Object.keys(row.genes).filter((name) => !names.includes(name)).sort();
    const inside = [pairs(told(row)), pairs(single)].concat(layers(row, names));
    const columns = element("div", null, inside);
    columns.className = "columns";
    panel.appendChild(columns);
    if (fixed.length)
      panel.appendChild(element("p", "Fixed by the space: " + fixed.map((n) => n + " " + shown(row.genes[n])).join(", ")));
    const file = JSON.stringify({ ...points.file, genes: row.genes });
    panel.appendChild(
      element("details", null, [
        element("summary", "As a file, for nas-ext extract --arch"),
        element("pre", file),
      ]));
  };

  document.querySelectorAll("div.plot").forEach((place) => {
    const figure = read(place.id + "-figure");
    figure.data.forEach((trace) => {
      if (!trace.customdata) return;
      trace.hovertext = trace.customdata.map((index) => (rows[index] ? hover(index) : ""));
      trace.hovertemplate = "%{hovertext}<extra></extra>";
    });
    // plotly's own button would send the figure's data to its server.
    const closed = { showSendToCloud: false, plotlyServerURL: "" };
    const config = { responsive: true, displaylogo: false, toImageButtonOptions: { scale: 2 }, ...closed };
    Plotly.newPlot(place, figure.data, figure.layout, config);
    place.on("plotly_click", (event) => {
      const index = event.points[0].customdata;
      if (rows[index]) show(index);
    });
  });
  const first = document.getElementById("architecture");
  if (first) show(Number(first.dataset.number));
})();
