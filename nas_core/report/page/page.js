// Puts everything into place, once the page is there.
document.querySelectorAll("div.plot").forEach(openPlot);
const ruler = document.getElementById("js-plotly-tester"); // in which plotly measures texts
if (ruler) ruler.setAttribute("aria-hidden", "true");
const settle = restore();
if (parts) parts.search.value = state.text;
if (place) fillTable();
if (filtering()) changed("filter");
if (points && rows.length && !readAddress() && panel) {
  state.selected = Math.min(Number(panel.dataset.number), rows.length - 1); // the address stays as it is
  changed("selected");
}
addEventListener("hashchange", readAddress);
addEventListener("pagehide", remember);
settle();
if (running) follow();
