// Draws the figures, with the selected row marked and rows that are filtered out dimmed.
const MOST_GENES = 14;
// plotly's own button would send the figure's data to its server.
const closed = { showSendToCloud: false, plotlyServerURL: "" };
const config = { responsive: true, displaylogo: false, displayModeBar: false, ...closed };
const plots = new Map();

const hover = (index) => {
  const row = rows[index];
  const values = told(row).map(([title, value]) => escaped(title) + ": <b>" + escaped(value) + "</b>");
  const genes = shownGenes(row).map((name) => escaped(name + " " + shownValue(row.genes[name])));
  const kept = genes.slice(0, MOST_GENES).concat(genes.length > MOST_GENES ? ["…"] : []);
  return ["<b>" + escaped(titleOf(row)) + "</b>"].concat(values, kept).join("<br>");
};

const ring = (figure, index, symbol, colour) => {
  const found = new Map();
  figure.data.filter((trace) => trace.customdata && trace.type === "scatter").forEach((trace) =>
    trace.customdata.forEach((other, at) => {
      if (other === index) found.set(trace.x[at] + " " + trace.y[at], [trace.x[at], trace.y[at]]);
    }));
  return {
    type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, cliponaxis: false,
    x: [...found.values()].map(([x]) => x), y: [...found.values()].map(([, y]) => y),
    marker: { symbol, size: 20, color: shade(colour), line: { width: 3 } },
  };
};

const traceFor = (trace, hidden) => {
  const made = themed(trace);
  if (hidden.has(trace.name)) made.visible = "legendonly";
  if (!trace.customdata || trace.type !== "scatter") return made;
  made.hovertext = trace.customdata.map((index) => (rows[index] ? hover(index) : ""));
  made.hovertemplate = "%{hovertext}<extra></extra>";
  if (narrow.matches) made.mode = trace.mode.replace("+text", "");
  if (filtering()) {
    made.selectedpoints = trace.customdata.map((index, at) => (rows[index] && !passes(index) ? -1 : at))
      .filter((at) => at >= 0);
    made.unselected = { marker: { opacity: 0.1 }, textfont: { color: "rgba(0,0,0,0)" } };
  }
  return made;
};

const draw = (place) => {
  const { figure, hidden, legend } = plots.get(place);
  const parallel = figure.data.some((trace) => trace.type === "parcoords");
  const data = figure.data.map((trace) => (parallel ? brushed(place, themed(trace)) : traceFor(trace, hidden)));
  const pointed = figure.data.some((trace) => trace.customdata && trace.type === "scatter");
  if (pointed) data.push(ring(figure, state.pinned, "square-open", "#1f6fb4"), ring(figure, state.selected, "circle-open", "#c04b6b"));
  const layout = layoutFor(figure);
  place.style.minHeight = layout.height + "px";
  if (parallel) {
    layout.margin = { ...figure.layout.margin };
    layout.paper_bgcolor = shade("white") === "white" ? "#ffffff" : "#15191e"; // of the halo around texts
    layout.height = figure.layout.height;
    place.style.minWidth = figure.data[0].dimensions.length * (narrow.matches ? 92 : 66) + "px";
  }
  writeLegend(legend, figure, hidden, () => draw(place), place);
  return Plotly.react(place, data, layout, config);
};

const openPlot = (place) => {
  const figure = read(place.id + "-figure");
  const legend = element("div", { class: "legend", role: "group", "aria-label": "Legend" });
  const parallel = figure.data.some((trace) => trace.type === "parcoords");
  const name = place.getAttribute("aria-label");
  const tools = element("div", { class: "tools" },
    parallel ? null : button("Whole plot", () => {
      const axes = { "xaxis.autorange": true, "yaxis.autorange": true };
      Plotly.relayout(place, axes);
    }, { "aria-label": "Whole plot: " + name }),
    button("Save as picture", () => Plotly.downloadImage(place, { format: "png", scale: 2, filename: place.id }),
      { "aria-label": "Save as picture: " + name }));
  place.before(legend);
  place.closest("figure").insertBefore(tools, place.closest("figure").querySelector(".unseen"));
  if (parallel) {
    const frame = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name });
    place.before(frame);
    frame.append(place);
  }
  plots.set(place, { figure, legend, hidden: new Set(), parallel });
  draw(place);
  place.firstElementChild.setAttribute("aria-hidden", "true"); // the figure has its name and its words
  if (parallel) openRanges(place, figure.data.find((trace) => trace.type === "parcoords"));
  place.on("plotly_click", (event) => {
    const index = event.points[0].customdata;
    if (!rows[index]) return;
    if (event.event && event.event.shiftKey) pin(index);
    else select(index);
  });
};

const redraw = (which) => plots.forEach((plot, place) => {
  if (which(plot)) draw(place);
});
[dark, narrow].forEach((query) => query.addEventListener("change", () => redraw(() => true)));
listeners.push((what) => {
  if (what === "selected" || what === "filter") redraw((plot) => !plot.parallel && plot.figure.data.some((t) => t.customdata));
});
