// A page about what is still running: it says how old its news is, and is loaded again as long as news come.
const running = read("following");
const STORE = "nas-ext report " + location.pathname;
const stored = () => {
  try {
    return JSON.parse(sessionStorage.getItem(STORE)) || {};
  } catch { // storage may be switched off
    return {};
  }
};

// What a reader has done with the page, for the page that comes after it.
const remember = () => {
  const focused = document.activeElement;
  const row = focused && focused.closest && focused.closest("#rows tr[data-row]");
  const open = [...document.querySelectorAll("details")].map((one) => one.open);
  const kept = {
    sort: state.sort, text: state.text, ranges: rangesSaved(), scroll: [scrollX, scrollY], open,
    table: (document.querySelector("#rows .rows") || {}).scrollTop || 0,
    hidden: [...plots].map(([place, plot]) => [place.id, [...plot.hidden]]),
    focus: row ? "row" : focused && focused.id, paused: state.paused,
  };
  try {
    sessionStorage.setItem(STORE, JSON.stringify(kept));
  } catch { /* then the page begins anew */ }
};
const restore = () => {
  const [entry] = performance.getEntriesByType("navigation");
  if (!entry || entry.type !== "reload") return () => {};
  const kept = stored();
  if (columns.some((column) => kept.sort && column.id === kept.sort.column)) state.sort = kept.sort;
  state.text = kept.text || "";
  state.paused = Boolean(kept.paused);
  restoreRanges(kept.ranges || []);
  plots.forEach((plot, place) => ((kept.hidden || []).find(([id]) => id === place.id) || [0, []])[1]
    .forEach((name) => plot.hidden.add(name)));
  return () => {
    const details = [...document.querySelectorAll("details")];
    if ((kept.open || []).length === details.length) details.forEach((one, at) => (one.open = kept.open[at]));
    const frame = document.querySelector("#rows .rows");
    if (frame) frame.scrollTop = kept.table || 0;
    const again = kept.focus === "row" ? document.querySelector("#rows tr[tabindex='0']") :
      kept.focus && document.getElementById(kept.focus);
    if (again) again.focus({ preventScroll: true });
    if (kept.scroll) scrollTo({ left: kept.scroll[0], top: kept.scroll[1], behavior: "instant" });
  };
};

const age = (seconds) =>
  seconds < 90 ? Math.max(0, Math.round(seconds)) + " s" :
  seconds < 5400 ? Math.round(seconds / 60) + " min" :
  seconds < 172800 ? (seconds / 3600).toFixed(1) + " h" : Math.round(seconds / 86400) + " days";

const follow = () => {
  const box = document.getElementById("running");
  const said = document.getElementById("running-age");
  const head = document.getElementById("running-state");
  let timer = 0;
  const again = (seconds) => {
    clearTimeout(timer);
    if (!state.paused) timer = setTimeout(() => location.reload(), 1000 * seconds);
  };
  const tell = () => {
    const since = (Date.now() - Date.parse(running.last)) / 1000;
    const written = (Date.now() - Date.parse(running.written)) / 1000;
    const late = since > running.patience_s;
    said.textContent = "Last evaluation " + age(since) + " ago; page written " + age(written) + " ago.";
    if (late && running.alive) {
      box.classList.add("late");
      head.textContent = running.late;
    }
    return late;
  };
  const toggle = button("", () => {
    state.paused = !state.paused;
    label();
    again(running.every_s);
  }, { id: "pause" });
  const label = () => {
    toggle.textContent = state.paused ? "Reload every " + running.every_s + " s" : "Stop reloading";
    toggle.setAttribute("aria-pressed", String(Boolean(state.paused)));
  };
  label();
  if (!running.alive) toggle.hidden = true;
  box.append(element("div", { class: "tools" }, toggle, button("Reload now", () => location.reload(), { id: "reload" })));
  const late = tell();
  setInterval(tell, 1000);
  if (running.alive) again(late ? Math.max(60, running.every_s) : running.every_s);
};
