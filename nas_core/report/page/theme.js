// Figures are written in light colours; here they become those of a dark page, and fit a phone.
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 640px)");
const touched = matchMedia("(pointer: coarse)");
const DARK = {
  "#1f6fb4": "#62a8ea", "#d1662b": "#f0925c", "#3a8f5a": "#6cc48d", "#8a5fb0": "#b995dd", "#b3892c": "#dcb65a",
  "#c04b6b": "#ea829e", "#4a9aa8": "#74c6d4", "#6d6d6d": "#a9adb2", "#22272d": "#e4e8ec", "#44505c": "#b3bdc7",
  "#e6e9ec": "#333b44", "#8b939c": "#828b95", "#a8480f": "#f0925c", white: "#1b2026",
};
const shade = (colour) => (dark.matches && DARK[colour]) || colour;

const themed = (value, name) => {
  if (typeof value === "string") return shade(value);
  if (Array.isArray(value))
    return name === "color" || (value.length && typeof value[0] === "object") ? value.map((one) => themed(one)) : value;
  if (value === null || typeof value !== "object") return value;
  const made = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner, key)]));
  // On a dark page the good lines of parallel coordinates are the bright ones.
  if (dark.matches && "colorscale" in made) made.reversescale = !made.reversescale;
  return made;
};

const layoutFor = (figure) => {
  const layout = themed(figure.layout);
  layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
  layout.margin = { ...layout.margin, t: 24 };
  layout.uirevision = "kept"; // what a reader has zoomed in on stays when colours or points change
  layout.showlegend = false; // the page has its own, whose entries keys can reach
  layout.dragmode = touched.matches ? false : "zoom"; // fingers scroll the page
  if (narrow.matches) {
    layout.height = Math.min(layout.height, 420);
    layout.font = { ...layout.font, size: 12 };
    layout.margin = { ...layout.margin, l: 45, r: 14 };
    ["xaxis", "yaxis"].forEach((axis) => {
      if (layout[axis] && !figure.data.some((trace) => trace.type === "bar")) layout[axis].nticks = 6;
    });
  }
  return layout;
};
