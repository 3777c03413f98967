"use strict";
// The first picture of a chart: its points, lines, axes and ticks in one small SVG, while plotly.js is still to begin.
deepbore.sketch = (place, chart) => {
  const NS = "http://www.w3.org/2000/svg", margin = { l: 62, r: 14, t: 26, b: 42, ...chart.layout.margin };
  const width = place.clientWidth, height = chart.layout.height, { ink, line, edge } = deepbore.inks();
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
  const traces = chart.data.filter((each) => each.type === "scatter" && Array.isArray(each.x) && Array.isArray(each.y) &&
    each.visible !== false && each.x.every((value) => value === null || isNumber(value)));
  if (!traces.length || width < 150 || width < chart.turns) return;
  const scale = (name, from, to) => { // of an axis: to pixels, and where its ticks are
    const { type, range } = chart.layout[`${name}axis`] || {}, isLog = type === "log";
    const on = (value) => (isLog ? Math.log10(value) : value);
    const seen = traces.flatMap((each) => each[name]).filter(isNumber).map(on).filter(Number.isFinite);
    let [low, high] = range || [Math.min(...seen), Math.max(...seen)];
    if (!(high > low)) { low -= 0.5; high += 0.5; }
    if (!range) [low, high] = [low - 0.05 * (high - low), high + 0.05 * (high - low)];
    const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
    const step = isLog ? Math.max(1, Math.ceil(rough)) : power * [1, 2, 5, 10].find((each) => each * power >= rough);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
    const at = (value) => from + (to - from) * (on(value) - low) / (high - low);
    return { at, ticks: ticks.map((each) => (isLog ? 10 ** each : each)) };
  };
  const x = scale("x", margin.l, width - margin.r), y = scale("y", height - margin.b, margin.t);
  const put = (tag, of, words = "") => {
    const made = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(of)) made.setAttribute(name, value);
    made.textContent = words;
    return made;
  };
  const words = (value) => String(Number(value.toPrecision(3)));
  const grid = [
    ...x.ticks.flatMap((tick) => [put("path", { d: `M${x.at(tick)} ${margin.t}V${height - margin.b}`, stroke: line }),
      put("text", { x: x.at(tick), y: height - margin.b + 17, "text-anchor": "middle" }, words(tick))]),
    ...y.ticks.flatMap((tick) => [put("path", { d: `M${margin.l} ${y.at(tick)}H${width - margin.r}`, stroke: line }),
      put("text", { x: margin.l - 8, y: y.at(tick) + 4, "text-anchor": "end" }, words(tick))]),
    ...["x", "y"].map((name) => put("text", { "font-size": 14, "text-anchor": "middle", ...(name === "x"
      ? { x: (margin.l + width - margin.r) / 2, y: height - 6 }
      : { transform: `translate(16 ${(margin.t + height - margin.b) / 2}) rotate(-90)` }) }, chart.layout[`${name}axis`]?.title?.text || "")),
    put("path", { d: `M${margin.l} ${margin.t}V${height - margin.b}H${width - margin.r}`, stroke: edge, fill: "none" }),
  ];
  const colour = (of) => deepbore.shade(typeof of?.color === "string" ? of.color : "#8a9099");
  const path = (trace) => {
    const points = trace.x.map((value, k) => [x.at(value), y.at(trace.y[k])]).filter((each) => each.every(Number.isFinite));
    const isLine = trace.mode?.includes("lines"), size = typeof trace.marker?.size === "number" ? trace.marker.size : 5;
    const joined = ([across, up], k) => (!k ? `M${across} ${up}` : trace.line?.shape === "hv" ? `H${across}V${up}` : `L${across} ${up}`);
    return put("path", { d: points.map(isLine ? joined : ([across, up]) => `M${across} ${up}h0`).join(""), fill: "none",
                         stroke: colour(isLine ? trace.line : trace.marker), "stroke-linecap": "round",
                         "stroke-width": isLine ? trace.line?.width || 2 : size });
  };
  const svg = put("svg", { class: "sketch", width, height, "aria-hidden": "true", "font-size": 12, fill: ink });
  svg.append(...grid, ...traces.map(path));
  place.replaceChildren(svg);
};
