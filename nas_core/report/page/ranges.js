// Ranges along the axes of parallel coordinates: dragged there, or typed into fields; both filter the rows.
const axesOf = new Map(); // figure -> its axes, with the fields of each

const keyOf = (place, label) => place.id + " " + label;

// The axes in the order to which a reader has moved them, with the ranges that are set.
const brushed = (place, trace) => {
  const there = place.data ? place.data[0].dimensions.map((one) => one.label) : [];
  const dimensions = trace.dimensions.map((one) => {
    const range = state.ranges.get(keyOf(place, one.label));
    return { ...one, constraintrange: range ? range.intervals.map((interval) => [...interval]) : null };
  });
  if (there.length) dimensions.sort((a, b) => there.indexOf(a.label) - there.indexOf(b.label));
  return { ...trace, dimensions };
};

const setRange = (place, axis, intervals) => {
  const key = keyOf(place, axis.label);
  if (intervals.length) state.ranges.set(key, { values: axis.values, intervals });
  else state.ranges.delete(key);
};

const fieldsOf = (place, axis) => {
  const names = axis.words && axis.words.some((word) => Number.isNaN(Number(word)));
  const label = plain(axis.label);
  if (names) {
    const choice = element("select", { "aria-label": label }, element("option", { value: "" }, "any"),
      ...axis.words.map((word, at) => element("option", { value: String(axis.ticks[at]) }, plain(word))));
    choice.addEventListener("change", () => {
      setRange(place, axis, choice.value === "" ? [] : [[Number(choice.value) - 0.1, Number(choice.value) + 0.1]]);
      changed("filter");
    });
    axis.sync = (intervals) => {
      const one = axis.ticks.find((tick) => intervals.length && within(tick, intervals));
      choice.value = one === undefined ? "" : String(one);
    };
    return element("label", {}, label, choice);
  }
  const [low, high] = ["from", "to"].map((word) =>
    element("input", { type: "number", step: "any", "aria-label": label + ", " + word, placeholder: word }));
  const read = () => {
    const [from, to] = [low.value === "" ? -Infinity : Number(low.value), high.value === "" ? Infinity : Number(high.value)];
    const open = from === -Infinity && to === Infinity;
    const ends = [Math.max(from, axis.least - 1), Math.min(to, axis.most + 1)]; // plotly takes no infinite ends
    setRange(place, axis, open ? [] : [ends]);
    changed("filter");
  };
  [low, high].forEach((field) => field.addEventListener("change", read));
  axis.sync = (intervals) => {
    const ends = intervals.length ? [intervals[0][0], intervals[intervals.length - 1][1]] : null;
    low.value = ends && ends[0] > axis.least ? String(Number(ends[0].toPrecision(5))) : "";
    high.value = ends && ends[1] < axis.most ? String(Number(ends[1].toPrecision(5))) : "";
  };
  return element("div", { class: "range" }, element("span", {}, label), low, high);
};

const openRanges = (place, trace) => {
  const axes = trace.dimensions.map((one) => ({
    label: one.label,
    values: new Map(trace.customdata.map((index, at) => [index, one.values[at]])),
    words: one.ticktext, ticks: one.tickvals,
    least: Math.min(...one.values), most: Math.max(...one.values),
  }));
  axesOf.set(place, axes);
  const form = element("details", { class: "ranges" }, element("summary", {}, "Ranges as numbers"),
    element("div", { class: "fields" }, ...axes.map((axis) => fieldsOf(place, axis))));
  const reset = button("Reset ranges", () => {
    state.ranges.clear();
    changed("filter");
  }, { id: place.id + "-reset" });
  const tools = place.closest("figure").querySelector(".tools");
  tools.prepend(reset);
  tools.after(form);
  let shown = "";
  const now = () => JSON.stringify(axes.map((axis) => (state.ranges.get(keyOf(place, axis.label)) || {}).intervals || null));
  place.on("plotly_restyle", () => {
    place.data[0].dimensions.forEach((one) => {
      const axis = axes.find((other) => other.label === one.label);
      const given = one.constraintrange;
      setRange(place, axis, !given || !given.length ? [] : Array.isArray(given[0]) ? given : [given]);
    });
    if (shown === now()) return;
    shown = now();
    changed("filter");
  });
  listeners.push((what) => {
    if (what !== "filter") return;
    axes.forEach((axis) => axis.sync((state.ranges.get(keyOf(place, axis.label)) || { intervals: [] }).intervals));
    reset.disabled = !axes.some((axis) => state.ranges.has(keyOf(place, axis.label)));
    if (shown !== now()) {
      shown = now();
      draw(place);
    }
  });
  shown = now();
  reset.disabled = true;
};

// Ranges by the name of their axis, to be found again in the page that is loaded anew.
const rangesSaved = () => [...state.ranges].map(([key, range]) => [key, range.intervals]);
const restoreRanges = (saved) => axesOf.forEach((axes, place) => axes.forEach((axis) => {
  const found = saved.find(([key]) => key === keyOf(place, axis.label));
  if (found) setRange(place, axis, found[1]);
}));
