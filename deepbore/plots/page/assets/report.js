"use strict";
// What the page does by itself: draws the charts that it is given as data; fills, sorts and filters the table; shows a
// trial, to be copied; starts anew. The dashboard gives it new data while it is open.
const deepbore = (() => {
  let given = { charts: [], about: {} };
  let within = null; // trials that a brush has left; null for all
  const make = (tag, of = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), of);
    made.append(...children);
    return made;
  };

  // --- light and dark -----------------------------------------------------------------------------------------------
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  let prints = false; // dark ink on white paper, as wide as the paper
  const isDark = () => dark.matches && !prints;
  const night = { "#1f3b73": "#8fb4ff", "#1a7f5a": "#3fbf8c", "#b8bcc2": "#6b737d", "#8a9099": "#8f979f",
                  "#c0392b": "#f0776a", "#d9822b": "#f0a04b", "#ffffff": "#1b2026", "#f3f5f6": "#262c33",
                  "#b9dccd": "#24503f", "#d5d9dd": "#3a424a", "#c3d3cb": "#3c524a", "#a9cdbd": "#3f6b5a",
                  "#7dbb9f": "#3f8a6c", "#4a9e7d": "#3fa67d", "#59636e": "#8f979f", "#c9ced4": "#5a636c", "#b5bcc2": "#525b64", "#a8bdb3": "#4a5f56", "#93bfac": "#437560", "#74b598": "#3f8a6c",
                  "rgba(255,255,255,.75)": "rgba(27,32,38,.75)" };
  const ofColours = /colou?r|colorscale/i;
  const dimmed = (what, isColour = false) => { // a copy, with its colours for a dark ground
    if (typeof what === "string") return isColour ? night[what] || what : what;
    if (Array.isArray(what)) return isColour || typeof what[0] === "object" ? what.map((each) => dimmed(each, isColour)) : what;
    if (what === null || typeof what !== "object") return what;
    return Object.fromEntries(Object.entries(what).map(([name, each]) =>
      [name, dimmed(each, ofColours.test(name) && !(each && each.constructor === Object))]));
  };
  const shade = (colour) => (isDark() ? night[colour] || colour : colour);
  const inks = () => (isDark() ? { ink: "#d5dade", line: "#333b44", edge: "#77818b", card: "#262c33" }
                               : { ink: "#333", line: "#eceff1", edge: "#9aa4ad", card: "#fff" });
  const looks = () => {
    const { ink, line, edge, card } = inks();
    const axis = { gridcolor: line, zeroline: false, linecolor: edge, ticks: "outside", tickcolor: edge, ticklen: 4,
                   automargin: true, exponentformat: "power", minexponent: 4 };
    return { axis, whole: {
      font: { family: "system-ui, sans-serif", size: 12, color: ink },
      margin: { l: 62, r: 14, t: 26, b: 42 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: edge, activecolor: ink },
      hovermode: "closest",
      dragmode: touch.matches ? false : "zoom", // a finger scrolls the page
      hoverlabel: { align: "left", bgcolor: card, bordercolor: edge, font: { size: 12, color: ink } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
    } };
  };

  // --- charts -------------------------------------------------------------------------------------------------------
  const turned = ({ data, layout }) => { // x runs down, y to the right
    const swapped = (each) => ({ ...each, x: each.y, y: each.x });
    const upright = (layout.annotations || []).map((each) => (each.xshift // a tick, else the name of an axis
      ? { ...swapped(each), xanchor: "center", yanchor: "top", xshift: 0, yshift: -2 }
      : { ...swapped(each), x: layout.yaxis.range[0], xanchor: "left", yanchor: "bottom", yshift: 3 }));
    return {
      data: data.map(swapped),
      layout: { ...layout, annotations: upright, height: 54 * (layout.xaxis.range[1] - layout.xaxis.range[0]) + 20,
                shapes: (layout.shapes || []).map((each) => ({ ...each, x0: each.y0, x1: each.y1, y0: each.x0, y1: each.x1 })),
                xaxis: { ...layout.yaxis, range: [layout.yaxis.range[0] - 0.02, 1.08] },
                yaxis: { ...layout.xaxis, range: [layout.xaxis.range[1], layout.xaxis.range[0]] } },
    };
  };
  const isPositive = (chart, name) => chart.data.every((trace) => trace[name].every((value) => value === null || value > 0));
  const logarithm = (place, name) => { // the switch between the scales of an axis
    const now = place.layout[name + "axis"].type === "log";
    const before = place.dataset.before ? JSON.parse(place.dataset.before) : {};
    const range = place.layout[name + "axis"].range;
    place.dataset.before = JSON.stringify({ ...before, [name]: range });
    Plotly.relayout(place, { [name + "axis.type"]: now ? "linear" : "log", [name + "axis.dtick"]: null,
                             ...(before[name] ? { [name + "axis.range"]: before[name] } : { [name + "axis.autorange"]: true }) });
  };
  const sign = (words) => ({ svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 21 16"><path d="M0 0"/>
    <text x="10" y="12" text-anchor="middle" font-size="12" textLength="20" lengthAdjust="spacingAndGlyphs" fill="#89929b">${words}</text></svg>` });
  const buttons = (chart) => {
    const axes = [...chart.log].filter((name) => isPositive(chart, name));
    return axes.map((name) => ({ name: "log " + name, title: `logarithmic or linear ${name}`,
                                 icon: sign(axes.length > 1 ? "log " + name : "log"),
                                 click: (place) => logarithm(place, name) }));
  };
  const brushed = (chart) => (!within || !chart.turns ? chart : { ...chart, data: chart.data.map((trace) => (trace.trials
    ? { ...trace, y: trace.y.map((y, k) => (within.has(trace.trials[k]) ? y : null)) } : trace)) });
  const wrapped = (axis, room) => { // the title of an axis in as many lines as it needs, and how many
    const words = axis.title && axis.title.text ? axis.title.text.split(" ") : [], lines = [""];
    for (const word of words) {
      const k = lines.length - 1;
      if (!lines[k]) lines[k] = word;
      else if (6.6 * (lines[k].length + 1 + word.length) <= room) lines[k] += " " + word;
      else lines.push(word);
    }
    return lines.length < 2 ? [axis, 1] : [{ ...axis, title: { ...axis.title, text: lines.join("<br>") } }, lines.length];
  };
  const draw = (place) => {
    const chart = given.charts[place.dataset.chart];
    place.querySelector(":scope > .sketch")?.remove();
    for (const trace of chart.data) {
      if (trace.trials) { // dimmed where a brush has left them out
        if (within) trace.selectedpoints = trace.trials.flatMap((id, k) => (within.has(id) ? [k] : []));
        else delete trace.selectedpoints;
        trace.unselected = { marker: { opacity: 0.06 } };
      }
      if (!trace.trials || trace.hovertext) continue;
      const more = trace.more || [];
      trace.hovertext = trace.trials.map((id, k) => given.about[id] + (more[k] ? "<br>" + more[k] : ""));
      trace.hoverinfo = "text";
    }
    const isNarrow = place.clientWidth < chart.turns;
    const shown = isNarrow ? turned(brushed(chart)) : brushed(chart);
    const { data, layout } = isDark() ? dimmed({ data: shown.data, layout: shown.layout }) : shown;
    const { axis, whole } = looks();
    const axes = Object.fromEntries(["xaxis", "yaxis"].map((name) => [name, { ...axis, ...(layout[name] || {}) }]));
    const [titled, lines] = wrapped(axes.xaxis, place.clientWidth - 90);
    axes.xaxis = titled;
    const below = 16 * (lines - 1), margin = { ...whole.margin, ...layout.margin };
    const named = data.filter((trace) => trace.name && trace.showlegend !== false).length;
    const height = layout.height + below + (place.clientWidth < 500 && layout.showlegend !== false ? 18 * Math.max(0, named - 2) : 0);
    place.style.height = `${height}px`;
    place.dataset.narrow = isNarrow;
    delete place.dataset.before;
    const bar = chart.turns ? [["toImage"]] : [[...buttons(chart), "zoom2d", "pan2d", "resetScale2d", "toImage"]];
    Plotly.react(place, data, { ...whole, ...layout, ...axes, height, ...(prints ? { width: place.clientWidth, autosize: false } : {}),
                   margin: { ...margin, b: margin.b + below }, uirevision: String(isNarrow) },
                   { responsive: true, displaylogo: false, ...(chart.log || touch.matches ? { displayModeBar: true } : {}), modeBarButtons: bar });
    if (place.dataset.listens) return;
    place.dataset.listens = true;
    place.on("plotly_click", (event) => {
      const [point] = event.points;
      if (point.data.trials) show(point.data.trials[point.pointIndex ?? point.pointNumber]);
    });
  };
  // charts far below wait until they come near, so that the page shows at once
  let places = [];
  const waiting = [];
  const drawNext = () => { // one at a time, so that the first one shows before the others are drawn
    const place = waiting.shift();
    if (waiting.length) setTimeout(drawNext);
    if (place.isConnected && !place.classList.contains("js-plotly-plot")) draw(place);
    doLater();
  };
  let later = null; // what waits until the first chart is drawn
  const doLater = () => {
    const job = later;
    later = null;
    if (job) setTimeout(job);
  };
  const near = new IntersectionObserver((entries) => {
    const isIdle = !waiting.length;
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); waiting.push(entry.target); }
    }
    if (isIdle && waiting.length) setTimeout(drawNext);
  }, { rootMargin: "600px" });
  const watch = () => { // the places that are there now; those that are drawn already stay so
    const now = [...document.querySelectorAll("[data-chart]")];
    for (const place of now) if (!places.includes(place)) near.observe(place);
    places = now;
  };
  const drawn = () => places.filter((place) => place.classList.contains("js-plotly-plot"));
  const printing = (begins) => {
    prints = begins;
    document.body.classList.toggle("prints", begins);
    (begins ? places : drawn()).forEach(draw);
    if (!begins) drawn().forEach((place) => Plotly.Plots.resize(place));
  };
  window.addEventListener("beforeprint", () => printing(true));
  window.addEventListener("afterprint", () => printing(false));
  dark.addEventListener("change", () => drawn().forEach(draw));
  window.addEventListener("resize", () => {
    for (const place of drawn()) {
      const { turns } = given.charts[place.dataset.chart] || {};
      if (turns && String(place.clientWidth < turns) !== place.dataset.narrow) draw(place);
    }
  });

  // --- what is remembered -------------------------------------------------------------------------------------------
  const kept = "deepbore " + location.pathname;
  const remembered = () => { try { return JSON.parse(sessionStorage.getItem(kept)) || {}; } catch { return {}; } };
  const remember = (what) => {
    try { sessionStorage.setItem(kept, JSON.stringify({ ...remembered(), ...what })); } catch { /* not allowed here */ }
  };
  const last = remembered();
  const reloads = () => { // a run that goes on
    if (last.scroll) window.scrollTo(0, last.scroll);
    const again = () => {
      if (document.querySelector("dialog[open]")) { setTimeout(again, 1000); return; } // somebody reads
      remember({ scroll: window.scrollY });
      location.reload();
    };
    setTimeout(again, 1000 * given.every);
  };

  // --- a trial ------------------------------------------------------------------------------------------------------
  let columns = [], rows = [], best = null, status = 0, params = [], first = 0, end = 0;
  let suspicious = new Set(), byId = new Map();
  class Exact { // what a number of JavaScript would alter, such as whole numbers above 2**53: its text
    constructor(text) { this.text = text; }
    toString() { return this.text; }
  }
  const take = (table) => { // another table
    ({ columns, rows, best, status, params } = table);
    for (const row of rows) {
      row.forEach((value, k) => { if (value && typeof value === "object" && !Array.isArray(value)) row[k] = new Exact(value.exact); });
    }
    [first, end] = [status + 1, status + 1 + params.length];
    suspicious = new Set(table.suspicious);
    byId = new Map(rows.map((row) => [row[0], row]));
  };
  const known = (value) => value !== null && value !== undefined && value !== "";
  const number = (value, digits) => (Number.isInteger(value) && Math.abs(value) < 1e9
    ? String(value) : String(Number(value.toPrecision(digits))));
  const shown = (value, digits = 5) => {
    if (!known(value)) return "";
    if (value instanceof Exact) return value.text;
    if (Array.isArray(value)) return typeof value[0] === "string" ? value[0] : JSON.stringify(value[0]);
    return typeof value === "number" ? number(value, digits) : value;
  };
  const configuration = (row) => params.map((name, k) => [name, row[first + k]])
    .filter(([, value]) => value !== null).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]);
  const json = (value) => (value instanceof Exact ? value.text : JSON.stringify(value, null, 2).replaceAll("\n", "\n  "));
  const scalar = (value) => (value instanceof Exact ? value.text : typeof value === "number" // YAML takes 1e-7 for a text
    ? String(value).replace(/^(-?\d+)e/, "$1.0e") : JSON.stringify(value));
  const quoted = (text) => (/^[\w.,:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const written = {
    YAML: (pairs) => pairs.map(([name, value]) => `${/^[A-Za-z_][\w.]*$/.test(name) ? name : JSON.stringify(name)}: ${scalar(value)}\n`).join(""),
    JSON: (pairs) => `{\n${pairs.map(([name, value]) => `  ${JSON.stringify(name)}: ${json(value)}`).join(",\n")}\n}`,
    flags: (pairs) => pairs.map(([name, value]) =>
      quoted(`--${name}=${typeof value === "string" ? value : scalar(value)}`)).join(" "),
  };
  const copy = async (text, button) => {
    try { await navigator.clipboard.writeText(text); } catch { // not allowed in this frame
      const area = make("textarea", { value: text });
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const name = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = name; }, 1200);
  };
  const copies = (row) => Object.entries(written).map(([name, write]) => {
    const button = make("button", { type: "button", textContent: `copy as ${name}` });
    button.addEventListener("click", () => copy(write(configuration(row)), button));
    return button;
  });
  let more = () => []; // further elements in the dialog of a trial
  const show = (id) => {
    const row = byId.get(id), dialog = document.getElementById("trial");
    if (!row || !dialog) return;
    const cells = (from, to) => columns.slice(from, to).flatMap((column, k) => (known(row[from + k])
      ? [make("div", {}, make("b", { textContent: column.name }), make("span", { textContent: shown(row[from + k], 10) }))]
      : []));
    const close = make("button", { type: "button", textContent: "close" });
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(
      make("h2", { id: "who", textContent: `Trial ${id}` }),
      make("div", { className: "pairs" }, ...cells(1, first), ...cells(end, columns.length)),
      make("h3", { textContent: "Configuration" }),
      make("div", { className: "pairs" }, ...cells(first, end)),
      ...more(id, row),
      make("div", { className: "tools" }, ...copies(row), close));
    if (!dialog.open) dialog.showModal();
  };
  document.addEventListener("click", (event) => { if (event.target.id === "trial") event.target.close(); }); // beside it
  const offerCopies = () => {
    for (const place of document.querySelectorAll("[data-copies]")) {
      const row = byId.get(Number(place.dataset.copies));
      if (row) place.replaceChildren(...copies(row));
    }
  };

  // --- table --------------------------------------------------------------------------------------------------------
  let order = { column: 1, up: true }, heads = null;
  const filter = () => document.getElementById("filter");
  const compare = (a, b) => (typeof a === "number" && typeof b === "number"
    ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const condition = (term) => { // lr<0.01, status=failed, or a word that stands in some cell
    const [, name, sign, wanted] = term.match(/^(.+?)(<=|>=|<|>|=)(.+)$/) || [];
    const k = columns.findIndex((column) => column.name === name);
    if (k < 0) return (row) => row.some((value) => shown(value).toLowerCase().includes(term.toLowerCase()));
    if (sign === "=") return (row) => known(row[k]) && (shown(row[k], 17) === wanted || row[k] === Number(wanted));
    const limit = Number(wanted);
    const holds = { "<": (x) => x < limit, ">": (x) => x > limit, "<=": (x) => x <= limit, ">=": (x) => x >= limit }[sign];
    return (row) => typeof row[k] === "number" && holds(row[k]);
  };
  const chosen = () => {
    const conditions = filter().value.trim().split(/\s+/).filter(Boolean).map(condition);
    const left = rows.filter((row) => (!within || within.has(row[0])) && conditions.every((holds) => holds(row)));
    const { column: k, up } = order;
    const has = left.filter((row) => known(row[k])).sort((a, b) => (up ? 1 : -1) * compare(a[k], b[k]) || a[0] - b[0]);
    return [...has, ...left.filter((row) => !known(row[k]))]; // what is missing stands below in either direction
  };
  const fill = () => {
    if (!heads) return; // the table is still to be made
    const lines = document.createDocumentFragment();
    const found = chosen();
    for (const row of found) {
      const line = make("tr", { className: [row[0] === best ? "best" : row[status],
                                            ...(suspicious.has(row[0]) ? ["suspicious"] : [])].join(" ") });
      row.forEach((value, k) => {
        const cell = make("td", { textContent: shown(value) });
        const classes = [columns[k].number && "number", k >= first && "more"].filter(Boolean);
        if (classes.length) cell.className = classes.join(" ");
        if (cell.textContent.length > 30) cell.title = cell.textContent;
        line.append(cell);
      });
      line.addEventListener("click", () => show(row[0]));
      lines.append(line);
    }
    document.getElementById("trials").tBodies[0].replaceChildren(lines);
    document.getElementById("count").textContent = filter().value.trim() || within ? `${found.length} of ${rows.length}` : `${rows.length} trials`;
    [...heads.cells].forEach((cell, j) => {
      if (j === order.column) cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
  };
  const makeTable = () => { // anew, as columns come and go
    const table = document.getElementById("trials");
    table.replaceChildren();
    table.createTBody();
    heads = table.createTHead().insertRow();
    columns.forEach((column, k) => makeHead(column, k));
    const place = columns.findIndex((column) => column.name === remembered().column);
    order = place < 0 ? { ...given.table.first } : { column: place, up: remembered().up };
    fill();
  };
  const makeHead = (column, k) => {
    const head = make("th", { scope: "col", className: [column.number && "number", k >= first && "more"].filter(Boolean).join(" ") });
    const button = make("button", { type: "button", textContent: column.name, title: "sort by " + column.name });
    button.addEventListener("click", () => {
      order = { column: k, up: head.getAttribute("aria-sort") !== "ascending" };
      remember({ column: column.name, up: order.up });
      fill();
    });
    head.append(button);
    heads.append(head);
  };
  const download = () => {
    const cell = (value) => {
      const plain = shown(value, 17);
      const runs = typeof value !== "number" && /^[=+@\t\r-]/.test(plain) && Number.isNaN(Number(plain)); // a formula
      const text = runs ? `'${plain}` : plain;
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [columns.map((column) => column.name), ...chosen()].map((row) => row.map(cell).join(","));
    const address = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    make("a", { href: address, download: "trials.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  const bind = () => { // the tools above the table, once
    filter().value = last.filter || "";
    filter().addEventListener("input", () => { remember({ filter: filter().value }); fill(); });
    document.getElementById("csv").addEventListener("click", download);
  };

  // --- what it is given ---------------------------------------------------------------------------------------------
  const start = (data) => {
    given = data;
    watch();
    if (given.every) reloads();
    if (!given.table) return;
    take(given.table);
    offerCopies();
    makeTable();
    bind();
  };
  const update = ({ charts, about, table }, fresh) => { // of an open page; `fresh` says which charts are new
    given = { ...given, charts, about };
    if (table) {
      given.table = table;
      take(table);
      if (heads) makeTable();
      else {
        later = makeTable;
        setTimeout(doLater, 1000); // where there is no chart
      }
    }
    offerCopies();
    watch();
    for (const place of drawn()) if (charts[place.dataset.chart] && fresh.has(place.dataset.chart)) draw(place);
  };
  const brush = (ids) => { // shows these trials alone: a set, or null for all
    within = ids;
    fill();
    for (const place of drawn()) draw(place);
  };
  const also = (elements) => { more = elements; };
  const data = document.getElementById("data");
  if (data) start(JSON.parse(data.textContent));
  return { start, update, brush, bind, also, show, make, shade, inks, rows: () => rows, columns: () => columns };
})();
