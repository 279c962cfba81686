// The report's own script: themes, plots drawn when they come into sight, sortable tables.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null; // a theme chosen by hand holds; else the system's does
  const applyTheme = () => { root.dataset.theme = chosen ?? (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", applyTheme);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  applyTheme();

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);

  function showTip(_, event, __, value) {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    const table = document.createElement("table");
    for (const [name, what] of Object.entries(value)) {
      const row = table.insertRow();
      row.insertCell().textContent = name;
      row.insertCell().textContent = what;
    }
    tip.replaceChildren(table);
    const left = Math.min(event.pageX + 14, scrollX + root.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  }

  function rowsOf(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  }

  // The specifications of all plots, in the order of their numbers: JSON, deflated, in base 64.
  let specs = [];
  async function readSpecs() {
    const packed = Uint8Array.from(atob(document.getElementById("plots").textContent), (c) => c.charCodeAt(0));
    const text = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    specs = await new Response(text).json();
  }

  function complain(place, error) {
    place.textContent = `This plot could not be drawn: ${error.message}`;
    console.error(error);
  }

  function draw(place) {
    const spec = specs[place.dataset.plot];
    if (!spec) return;
    delete specs[place.dataset.plot];
    for (const name of Object.keys(spec.datasets)) spec.datasets[name] = rowsOf(spec.datasets[name]);
    const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, tooltip: showTip };
    vegaEmbed(place, spec, options)
      .then(() => { place.dataset.drawn = ""; }, (error) => complain(place, error));
  }

  const places = [...document.querySelectorAll(".plot")];
  const drawAll = () => places.forEach(draw);
  const inSight = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "600px" },
  );
  readSpecs().then(
    () => places.forEach((place) => inSight.observe(place)),
    (error) => places.forEach((place) => complain(place, error)),
  );

  // Print: light, everything drawn and nothing folded away; then back.
  let folded = [];
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    drawAll();
  });
  addEventListener("afterprint", () => {
    folded.forEach((details) => { details.open = false; });
    applyTheme();
  });

  function key(row, column) {
    const cell = row.cells[column];
    const shown = cell.dataset.order ?? cell.textContent.trim();
    if (shown === "–") return null;
    if (shown === "lost") return Infinity;
    const number = Number(shown.replaceAll(",", "").replace("−", "-"));
    return Number.isNaN(number) ? shown : number;
  }

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
        const empty = rows.filter(([value]) => value === null);
        const rest = rows.filter(([value]) => value !== null).sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
        table.tBodies[0].append(...[...rest, ...empty].map(([, row]) => row));
      });
    });
  }
})();
