// The report's own script: themes, plots drawn when they come into sight, sortable tables.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
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

  // Stretches of time between two moments, joined so that there are about as many as pixels: extremes stay.
  const MOST_STRETCHES = 600, FEW = 150;

  function joined(rows) {
    const there = rows.filter((row) => row.n > 0);
    const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
    const one = { ...rows[0], end: rows.at(-1).end, dot: false, n: sum("n") };
    for (const name of ["late", "skipped", "lost"]) if (name in one) one[name] = sum(name);
    one.min = there.length ? Math.min(...there.map((row) => row.min)) : null;
    one.max = there.length ? Math.max(...there.map((row) => row.max)) : null;
    one.mean = there.length ? there.reduce((total, row) => total + row.mean * row.n, 0) / one.n : null;
    return one;
  }

  function between(rows, from, to) {
    const inside = rows.filter((row) => row.end > from && row.t < to);
    const size = Math.ceil(inside.length / MOST_STRETCHES);
    if (size <= 1) return inside.map((row) => ({ ...row, dot: row.dot || (row.n > 0 && inside.length <= FEW) }));
    return Array.from({ length: Math.ceil(inside.length / size) }, (_, i) => joined(inside.slice(i * size, (i + 1) * size)));
  }

  function draw(place) {
    const spec = specs[place.dataset.plot];
    if (!spec) return;
    delete specs[place.dataset.plot];
    for (const name of Object.keys(spec.datasets)) spec.datasets[name] = rowsOf(spec.datasets[name]);
    const rows = spec.datasets.stretches;
    const zoom = spec.params && zoomOf(place);
    if (zoom) {
      zoom.whole ??= spec.params.slice(0, 2).map((one) => one.value);
      const [from, to] = zoom.now ?? zoom.whole;
      spec.params[0].value = from;
      spec.params[1].value = to;
      spec.datasets.stretches = between(rows, from, to);
    }
    const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, tooltip: showTip };
    vegaEmbed(place, spec, options).then(({ view }) => {
      if (zoom) zoom.add(place, view, rows, spec.params[2].value);
      place.dataset.drawn = "";
    }, (error) => complain(place, error));
  }

  // Zoom: the plots over time of a cell show the same part of its run. Buttons above the first of them, or
  // dragging across one with a mouse, choose it.
  const zooms = new Map();

  function zoomOf(place) {
    const cell = place.closest(".cell");
    if (!zooms.has(cell)) zooms.set(cell, new Zoom(place));
    return zooms.get(cell);
  }

  class Zoom {
    constructor(place) {
      this.plots = [];
      this.now = null; // null: the whole run
      this.bar = document.createElement("div");
      this.bar.className = "zoom";
      this.bar.setAttribute("role", "group");
      this.bar.setAttribute("aria-label", "Zoom in time");
      for (const [sign, name, scale, step] of [["−", "Zoom out", 2, 0], ["+", "Zoom in", 0.5, 0],
        ["←", "Earlier", 1, -0.5], ["→", "Later", 1, 0.5]]) {
        this.button(sign, name, () => this.change(scale, step));
      }
      this.button("Whole run", "Whole run", () => this.show(null));
      this.said = document.createElement("span");
      this.said.setAttribute("aria-live", "polite");
      const mouse = matchMedia("(any-pointer: fine)").matches;
      this.said.textContent = mouse ? "Drag across the plot to zoom in time" : "Zoom in time";
      this.bar.append(this.said);
      place.before(this.bar);
    }

    button(sign, name, act) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      if (sign !== name) button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
      this.bar.append(button);
    }

    add(place, view, rows, top) {
      this.plots.push({ view, rows, top });
      place.addEventListener("pointerdown", (event) => {
        if (event.pointerType !== "touch" && event.button === 0) this.drag(place, view, event);
      });
    }

    change(scale, step) {
      const [from, to] = this.now ?? this.whole;
      const length = (to - from) * scale;
      const middle = (from + to) / 2 + step * length;
      this.show([middle - length / 2, middle + length / 2]);
    }

    show(range) {
      const [first, last] = this.whole;
      if (range) {
        const length = Math.max(Math.min(range[1] - range[0], last - first), (last - first) / 1e6);
        const from = Math.min(Math.max(range[0], first), last - length);
        range = length < last - first ? [from, from + length] : null;
      }
      this.now = range;
      const [from, to] = range ?? this.whole;
      for (const { view, rows, top } of this.plots) {
        const inside = between(rows, from, to);
        const greatest = Math.max(...inside.map((row) => row.max ?? 0));
        view.signal("from", from).signal("to", to).signal("top", range && greatest > 0 ? 1.1 * greatest : top);
        view.data("stretches", inside).runAsync();
      }
      const digits = Math.max(0, 3 - Math.floor(Math.log10(to - from)));
      this.said.textContent = range ? `${from.toFixed(Math.min(digits, 9))} to ${to.toFixed(Math.min(digits, 9))}` : "Whole run";
    }

    drag(place, view, start) {
      const svg = place.querySelector("svg").getBoundingClientRect();
      const left = svg.left + view.origin()[0];
      const x = view.scale("x");
      const [begin, end] = x.range();
      const inside = (event) => Math.min(Math.max(event.clientX - left, begin), end);
      const at = inside(start);
      const mark = document.createElement("div");
      mark.className = "dragged";
      place.append(mark);
      const move = (event) => {
        const now = inside(event);
        const from = left - place.getBoundingClientRect().left + Math.min(at, now);
        mark.style.left = `${from}px`;
        mark.style.width = `${Math.abs(now - at)}px`;
      };
      const stop = (event) => {
        removeEventListener("pointermove", move);
        removeEventListener("pointerup", stop);
        removeEventListener("pointercancel", stop);
        mark.remove();
        const ends = [at, inside(event)].sort((a, b) => a - b);
        if (event.type === "pointerup" && ends[1] - ends[0] > 5) this.show(ends.map((px) => x.invert(px)));
      };
      addEventListener("pointermove", move);
      addEventListener("pointerup", stop);
      addEventListener("pointercancel", stop);
      start.preventDefault();
    }
  }

  const places = [...document.querySelectorAll(".plot")];
  const drawAll = () => places.forEach(draw);
  const inSight = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "600px" },
  );
  if (places.length) {
    readSpecs().then(
      () => places.forEach((place) => inSight.observe(place)),
      (error) => places.forEach((place) => complain(place, error)),
    );
  }

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

  // Filters: rows, squares of the matrix and cells that do not fit are hidden.
  const filter = document.getElementById("filter");
  if (filter) {
    const entries = [...document.querySelectorAll("[data-cell]")];
    const shown = document.getElementById("shown");
    const { total, things } = filter.dataset;
    const fits = (entry, asked, words) => asked.every(([name, value]) =>
      (name === "outcome" ? entry.dataset.outcome : JSON.parse(entry.dataset.axes)[name]) === value)
      && words.every((word) => entry.dataset.cell.includes(word));
    const apply = () => {
      const asked = [...filter.querySelectorAll("select")].filter((one) => one.value).map((one) => [one.name, one.value]);
      const words = filter.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const entry of entries) {
        entry.classList.toggle("filtered", !fits(entry, asked, words));
      }
      const left = document.querySelectorAll("tr[data-cell]:not(.filtered)").length;
      shown.textContent = `${left} of ${total} ${things}`;
    };
    filter.addEventListener("input", apply);
    filter.addEventListener("reset", () => setTimeout(apply));
    filter.addEventListener("submit", (event) => event.preventDefault());
    apply();
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
