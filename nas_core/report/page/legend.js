// The legend of a figure as buttons that show and hide its traces, and what else can be done with the figure.
const SHAPES = {
  circle: "M11 3a4 4 0 1 0 .01 0z", square: "M7 3h8v8h-8z", diamond: "M11 1.5 16.5 7 11 12.5 5.5 7z",
  "triangle-up": "M11 2 16 11H6z", "triangle-down": "M11 12 6 3h10z", cross: "M9.5 2h3v3.5H16v3h-3.5V12h-3V8.5H6v-3h3.5z",
  x: "M7 2l4 3.5L15 2l1.5 1.5L13 7l3.5 3.5L15 12l-4-3.5L7 12l-1.5-1.5L9 7 5.5 3.5z",
  star: "M11 1l1.8 4 4.2.4-3.2 2.9 1 4.2L11 10.3 7.2 12.5l1-4.2L5 5.4 9.200 5z",
};
const DASHES = { dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3" };
const plain = (text) => String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

const swatch = (trace) => {
  const made = svg("svg", { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true" });
  const mode = trace.mode || "";
  const colour = (trace.line && trace.line.color) || (trace.marker && trace.marker.color) || "currentColor";
  if (trace.type === "bar") made.append(svg("rect", { x: 1, y: 2, width: 20, height: 10, fill: colour }));
  if (mode.includes("lines")) {
    const dash = DASHES[(trace.line || {}).dash] || "none";
    made.append(svg("path", { d: "M0 7h22", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
  }
  if (mode.includes("markers")) {
    const marker = trace.marker || {};
    const open = String(marker.symbol || "").endsWith("-open") || String(marker.color).startsWith("rgba(255");
    const edge = (marker.line && marker.line.color) || colour;
    const path = SHAPES[String(marker.symbol || "circle").replace(/-open$/, "")] || SHAPES.circle;
    made.append(svg("path", open ? { d: path, fill: "none", stroke: edge, "stroke-width": 2 } : { d: path, fill: colour }));
  }
  return made;
};

// Called again whenever colours change; `hidden` holds the names of the traces that are not shown.
const writeLegend = (box, figure, hidden, redraw, place) => {
  const entries = figure.data.filter((trace) => trace.name && trace.showlegend !== false);
  box.replaceChildren(...entries.map((trace, at) => {
    const made = button("", () => {
      if (hidden.has(trace.name)) hidden.delete(trace.name);
      else hidden.add(trace.name);
      redraw();
      document.getElementById(made.id).focus({ preventScroll: true });
    }, { id: place.id + "-legend" + at, "aria-pressed": String(!hidden.has(trace.name)), title: "Show or hide" });
    made.append(swatch(themed(trace)), plain(trace.name));
    return made;
  }));
};
