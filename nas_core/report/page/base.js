// What the other scripts share: the page's data, what is selected and what is filtered out, and small helpers.
const read = (id) => {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
};
const points = read("points");
const rows = points ? points.rows : [];

const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  Object.entries(attributes || {}).forEach(([key, value]) => {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  });
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};
const button = (text, pressed, attributes) => {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", pressed);
  return made;
};
const pairs = (list) => element("dl", {}, ...list.flatMap(([a, b]) => [element("dt", {}, a), element("dd", {}, b)]));
const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// Values for people: numbers with the decimals of their field or four digits.
const number = (value, digits) =>
  digits === null || digits === undefined ? String(Number(value.toPrecision(4))) : value.toFixed(digits);
const valueText = (value, field, unit) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  return number(value, field.digits) + (unit && field.unit ? " " + field.unit : "");
};
const titleOf = (row) => row.title || row.key;
const told = (row) =>
  points.fields
    .map((field, place) => [field.title, valueText(row.values[place], field, true)])
    .filter(([, text]) => text !== "");
const shownValue = (value) => (Array.isArray(value) ? value.join("/") : String(value));
const shownGenes = (row) => points.shown.filter((name) => row.genes && name in row.genes);

// One state for table, panel and figures; whoever shows a part of it listens.
const state = { selected: null, pinned: null, text: "", ranges: new Map(), sort: { column: "place", down: false } };
const listeners = [];
const changed = (what) => listeners.forEach((listener) => listener(what));
const select = (index, from) => {
  if (!rows[index]) return;
  state.selected = index;
  changed("selected");
  if (from !== "address") writeAddress();
};
const pin = (index) => {
  state.pinned = index;
  changed("selected");
  writeAddress();
};

// Rows that pass the text and all ranges. A range: the values of an axis by row, and the intervals that are kept.
const within = (value, intervals) => intervals.some(([low, high]) => value >= low && value <= high);
const textOf = rows.map((row) =>
  [titleOf(row), row.key, ...told(row).map(([, text]) => text), ...(row.about || [])].join(" ").toLowerCase());
const passes = (index) => {
  if (state.text && !state.text.toLowerCase().split(/\s+/).every((word) => textOf[index].includes(word))) return false;
  return [...state.ranges.values()].every((range) =>
    range.values.has(index) && within(range.values.get(index), range.intervals));
};
const filtering = () => state.text !== "" || state.ranges.size > 0;

// The address of a selection: #a=KEY, for the second row of the same key &n=2; b and m are those of the pinned row.
const placeOf = (index) => rows.slice(0, index + 1).filter((row) => row.key === rows[index].key).length;
const indexOf = (key, place) => {
  let left = Number(place) || 1;
  return rows.findIndex((row) => row.key === key && --left === 0);
};
const writeAddress = () => {
  const parts = [["a", "n", state.selected], ["b", "m", state.pinned]].flatMap(([key, count, index]) => {
    if (index === null) return [];
    const place = placeOf(index);
    return [key + "=" + encodeURIComponent(rows[index].key)].concat(place > 1 ? [count + "=" + place] : []);
  });
  history.replaceState(null, "", "#" + parts.join("&"));
};
const readAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const [a, b] = [indexOf(given.get("a"), given.get("n")), indexOf(given.get("b"), given.get("m"))];
  if (b >= 0) state.pinned = b;
  if (a >= 0) select(a, "address");
  return a >= 0;
};
