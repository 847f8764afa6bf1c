// One network layer by layer, as SVG: numbers as bars, words as coloured cells with letters; a picture for each side.
const SVG = "http://www.w3.org/2000/svg";
const ROW = { bars: 64, cells: 28 };
const WIDE = { few: 34, many: 25 };

const svg = (name, attributes, ...children) => {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...children);
  return made;
};

// Side -> name -> a value per layer: what Python gave, or the genes whose values are lists.
const sidesOf = (row) => {
  if (row.drawing) return row.drawing;
  const sides = {};
  Object.keys(row.genes || {}).filter((name) => Array.isArray(row.genes[name]) && row.genes[name].length)
    .forEach((name) => {
      const dot = name.lastIndexOf(".");
      const side = name.slice(0, Math.max(dot, 0));
      (sides[side] = sides[side] || {})[name.slice(dot + 1)] = row.genes[name];
    });
  return Object.fromEntries(Object.entries(sides).sort(([a], [b]) =>
    (a !== "encoder") - (b !== "encoder") || (a < b ? -1 : 1)));
};

// Bars of different networks are compared: the longest of all rows fills its place.
const longest = (() => {
  let found = null;
  return (name) => {
    if (found === null) {
      found = {};
      rows.forEach((row) => Object.values(sidesOf(row)).forEach((genes) => Object.entries(genes).forEach(([key, values]) =>
        values.forEach((value) => {
          if (typeof value === "number") found[key] = Math.max(found[key] || 0, value);
        }))));
    }
    return found[name] || 1;
  };
})();

const kindOf = (word) => (points.kinds || {})[word] || ["#5f6670", String(word).slice(0, 1).toUpperCase()];
const luminance = (colour) => {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const linear = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const inkOn = (colour) => (1.05 / (luminance(colour) + 0.05) >= 4.5 ? "#ffffff" : "#14181c");

const drawSide = (row, side, genes) => {
  const names = Object.keys(genes).sort((a, b) =>
    (typeof genes[a][0] === "number") - (typeof genes[b][0] === "number"));
  const layers = Math.max(...names.map((name) => genes[name].length));
  const wide = layers > 8 ? WIDE.many : WIDE.few;
  const left = Math.min(120, 14 + 6.6 * Math.max(...names.map((name) => name.length)));
  const parts = [];
  let top = 4;
  names.forEach((name) => {
    const cells = typeof genes[name][0] !== "number";
    const height = cells ? ROW.cells : ROW.bars;
    const base = top + height - 4;
    parts.push(svg("text", { x: left - 8, y: cells ? top + 17 : base - 3, class: "name" }, name.replace(/_/g, " ")));
    if (!cells) parts.push(svg("line", { x1: left, x2: left + layers * wide, y1: base, y2: base, class: "base" }));
    genes[name].forEach((value, layer) => {
      const x = left + layer * wide;
      if (cells) {
        const [colour, letter] = kindOf(value);
        parts.push(svg("rect", { x: x + 1, y: top, width: wide - 2, height: height - 4, rx: 3, fill: colour }));
        parts.push(svg("text", { x: x + wide / 2, y: top + 17, class: "value", style: "fill:" + inkOn(colour) }, letter));
      } else {
        const long = Math.max(1, (height - 22) * value / longest(name));
        parts.push(svg("rect", { x: x + 3, y: base - long, width: wide - 6, height: long, class: "bar" }));
        parts.push(svg("text", { x: x + wide / 2, y: base - long - 3, class: "value" }, String(value)));
      }
    });
    top += height;
  });
  for (let layer = 1; layer <= layers; layer += 1)
    parts.push(svg("text", { x: left + (layer - 0.5) * wide, y: top + 12, class: "layer" }, String(layer)));
  parts.push(svg("text", { x: left - 8, y: top + 12, class: "name" }, "layer"));
  const what = (side ? side.charAt(0).toUpperCase() + side.slice(1) : "Network") + " of " + titleOf(row) + ", " +
    layers + (layers === 1 ? " layer" : " layers");
  const words = names.map((name) => name.replace(/_/g, " ") + ": " + genes[name].join(", ")).join("; ");
  const size = { width: left + layers * wide + 4, height: top + 18 };
  return element("figure", { class: "side" },
    element("figcaption", {}, side || "network"),
    svg("svg", { ...size, viewBox: "0 0 " + size.width + " " + size.height, role: "img" },
      svg("title", {}, what), svg("desc", {}, words), ...parts));
};

// All sides beside each other, and what the letters mean; null for a row that has no layers.
const drawing = (row) => {
  const sides = Object.entries(sidesOf(row));
  if (!sides.length) return null;
  const words = [...new Set(sides.flatMap(([, genes]) => Object.values(genes).flat()))].filter((one) =>
    typeof one === "string").sort();
  const key = words.map((word) => {
    const [colour, letter] = kindOf(word);
    const cell = element("b", { style: "background:" + colour + ";color:" + inkOn(colour), "aria-hidden": "true" }, letter);
    return element("li", {}, cell, " " + word);
  });
  return element("div", { class: "drawing" },
    element("div", { class: "sides" }, ...sides.map(([side, genes]) => drawSide(row, side, genes))),
    key.length ? element("ul", { class: "kinds" }, ...key) : null);
};
