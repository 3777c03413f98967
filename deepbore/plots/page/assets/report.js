"use strict";
// What the page does by itself: draws the charts that it is given as data, fills and sorts the table, starts anew.
(() => {
  const given = JSON.parse(document.getElementById("data").textContent);

  // --- charts -------------------------------------------------------------------------------------------------------
  const looks = {
    font: { family: "system-ui, sans-serif", size: 12, color: "#333" },
    margin: { l: 62, r: 14, t: 26, b: 42 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hovermode: "closest",
    hoverlabel: { align: "left", bgcolor: "#fff", bordercolor: "#9aa4ad", font: { size: 12, color: "#222" } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
  };
  const axis = { gridcolor: "#eceff1", zeroline: false, linecolor: "#9aa4ad", ticks: "outside", tickcolor: "#9aa4ad",
                 ticklen: 4, automargin: true, exponentformat: "power", minexponent: 4 };
  const withAxes = (layout) => {
    const whole = { ...looks, ...layout };
    for (const name of ["xaxis", "yaxis"]) whole[name] = { ...axis, ...(layout[name] || {}) };
    return whole;
  };
  const draw = (place) => {
    const chart = given.charts[place.dataset.chart];
    for (const trace of chart.data) {
      if (!trace.trials) continue;
      const more = trace.more || [];
      trace.hovertext = trace.trials.map((id, k) => given.about[id] + (more[k] ? "<br>" + more[k] : ""));
      trace.hoverinfo = "text";
    }
    Plotly.newPlot(place, chart.data, withAxes(chart.layout), { responsive: true, displayModeBar: false });
  };
  // charts far below wait until they come near, so that the page shows at once
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px" });
  for (const place of document.querySelectorAll("[data-chart]")) near.observe(place);
  window.addEventListener("beforeprint", () => {
    for (const place of document.querySelectorAll("[data-chart]:not(.js-plotly-plot)")) draw(place);
  });

  // --- table --------------------------------------------------------------------------------------------------------
  const { columns, rows, best } = given.table;
  const table = document.getElementById("trials");
  const body = table.createTBody();
  const kept = "deepbore " + location.pathname;
  const remembered = () => { try { return JSON.parse(sessionStorage.getItem(kept)) || {}; } catch { return {}; } };
  const remember = (what) => {
    try { sessionStorage.setItem(kept, JSON.stringify({ ...remembered(), ...what })); } catch { /* not allowed here */ }
  };
  const known = (value) => value !== null && value !== undefined && value !== "";
  const compare = (a, b) => (typeof a === "number" && typeof b === "number"
    ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const shown = (value) => {
    if (!known(value)) return "";
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(7)));
  };
  const fill = (order) => {
    const lines = document.createDocumentFragment();
    for (const row of order) {
      const line = document.createElement("tr");
      line.className = row[0] === best ? "best" : row[given.table.status];
      row.forEach((value, k) => {
        const cell = document.createElement("td");
        cell.textContent = shown(value);
        if (columns[k].number) cell.className = "number";
        if (cell.textContent.length > 30) cell.title = cell.textContent;
        line.append(cell);
      });
      lines.append(line);
    }
    body.replaceChildren(lines);
  };
  const sort = (k, up) => {
    const has = rows.filter((row) => known(row[k])).sort((a, b) => (up ? 1 : -1) * compare(a[k], b[k]) || a[0] - b[0]);
    fill([...has, ...rows.filter((row) => !known(row[k]))]); // what is missing stands below in either direction
    [...heads.cells].forEach((cell, j) => {
      if (j === k) cell.setAttribute("aria-sort", up ? "ascending" : "descending"); else cell.removeAttribute("aria-sort");
    });
    remember({ column: columns[k].name, up });
  };
  const heads = table.createTHead().insertRow();
  columns.forEach((column, k) => {
    const head = document.createElement("th");
    head.scope = "col";
    if (column.number) head.className = "number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.name;
    button.title = "sort by " + column.name;
    button.addEventListener("click", () => sort(k, head.getAttribute("aria-sort") !== "ascending"));
    head.append(button);
    heads.append(head);
  });
  const last = remembered();
  const place = columns.findIndex((column) => column.name === last.column);
  if (place >= 0) sort(place, last.up); else sort(given.table.first.column, given.table.first.up);

  // --- a run that goes on -------------------------------------------------------------------------------------------
  if (given.every) {
    if (last.scroll) window.scrollTo(0, last.scroll);
    setTimeout(() => { remember({ scroll: window.scrollY }); location.reload(); }, 1000 * given.every);
  }
})();
