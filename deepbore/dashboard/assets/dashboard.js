"use strict";
// The dashboard: the list of runs, the page of one, and several side by side, kept up with what the server says.
// Charts, the table of trials and the dialog of one are those of the page of a run (report.js).
(() => {
  const { make } = deepbore;
  const view = document.getElementById("view");
  const isReadOnly = document.documentElement.dataset.mode === "read-only";
  const isOpen = document.documentElement.dataset.open === "yes"; // to other machines: reading needs the token, too
  const [, place, key] = location.pathname.split("/"); // "", "run" or "compare"
  const button = (textContent, click, of = {}) => {
    const made = make("button", { type: "button", textContent, ...of });
    made.addEventListener("click", click);
    return made;
  };
  const painted = () => new Promise((ready) => { requestAnimationFrame(() => setTimeout(ready)); }); // what is put there
  let loading = null;
  const drawable = (picture) => { // plotly.js is there; it begins after a first picture, which needs none of it
    loading ||= picture().then(painted).then(() => performance.mark("first picture")).catch(console.error).then(() => new Promise((ready, fail) => {
      const script = make("script", { src: "/assets/plotly.js" });
      script.addEventListener("load", ready);
      script.addEventListener("error", () => { loading = null; fail(new Error("plotly.js does not load")); });
      document.head.append(script);
    }));
    return loading;
  };
  const says = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  // --- the token ----------------------------------------------------------------------------------------------------
  const stored = () => { try { return sessionStorage.getItem("deepbore token") || ""; } catch { return ""; } };
  let token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
  if (token) { // out of the address, so that it is in no history and on no screen
    try { sessionStorage.setItem("deepbore token", token); } catch { /* kept while this page is open */ }
    history.replaceState(null, "", location.pathname + location.search);
  } else token = stored();
  const post = async (path, data = {}) => {
    const answer = await fetch(path, { method: "POST", body: JSON.stringify(data),
                                       headers: { "content-type": "application/json", "x-deepbore-token": token } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return JSON.parse(text);
  };

  // --- what comes from the server -----------------------------------------------------------------------------------
  const runs = new Map();
  const listeners = [];
  const link = document.getElementById("link");
  const listen = () => {
    const source = new EventSource("/events");
    source.addEventListener("open", () => { says(link, "live"); link.className = "live"; });
    source.addEventListener("error", () => {
      says(link, source.readyState === 2 ? "refused: the token is missing or wrong" : "the dashboard does not answer; trying again");
      link.className = "lost";
    });
    source.addEventListener("message", (event) => {
      const { rows, all } = JSON.parse(event.data);
      if (all) runs.clear();
      for (const row of rows) runs.set(row.key, row);
      for (const each of listeners) each(new Set(rows.map((row) => row.key)));
    });
  };
  const since = (then) => { // as `deepbore list` says it
    const seconds = Math.max(0, Date.now() / 1000 - then);
    for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (seconds >= 2 * length) return `${Math.round(seconds / length)} ${unit}`;
    }
    return `${Math.round(seconds)} s`;
  };
  const meanings = { running: "a process writes it", ended: "it has had its trials", stopped: "no process writes it",
                     dead: "its process ended while trials were running; the next run goes on with them",
                     unreadable: "its journal can't be read" };
  const pill = (row) => make("span", { className: `pill ${row.state}`, title: row.error || meanings[row.state],
                                       textContent: row.read < 1 && !row.error ? `reading ${Math.round(100 * row.read)} %` : row.state });
  const counts = (row) => Object.entries(row.counts || {}).map(([name, n]) => `${n} ${name}`).join(", ");

  // --- the list -----------------------------------------------------------------------------------------------------
  const list = () => {
    document.title = "runs · deepbore";
    const filter = make("input", { type: "search", placeholder: "filter", id: "which" });
    filter.setAttribute("aria-label", "filter runs");
    const together = button("side by side", () => { location.href = `/compare?runs=${chosen().join(",")}`; }, { disabled: true, id: "together" });
    const total = make("span");
    total.setAttribute("role", "status");
    const body = make("tbody");
    const titles = ["", "run", "state", "best", "trials", "", "last change"];
    const heads = titles.map((name, k) => make("th", { scope: "col", textContent: name, className: k === 5 ? "more" : "" }));
    view.replaceChildren(make("section", {}, make("h1", { textContent: "Runs" }),
      make("div", { className: "tools" }, filter, total, together),
      make("div", { className: "scroll" }, make("table", { className: "list" }, make("thead", {}, make("tr", {}, ...heads)), body))));
    const lines = new Map();
    const chosen = () => [...lines.values()].filter((each) => each.box.checked).map((each) => each.key);
    const choose = () => { together.disabled = chosen().length < 2; };
    const lineOf = (row) => {
      const box = make("input", { type: "checkbox" });
      box.setAttribute("aria-label", `compare ${row.name}`);
      box.addEventListener("change", choose);
      const cells = ["run", "state", "best", "trials", "counts", "age"].map((name) => make("td", { className: name }));
      cells[4].classList.add("more");
      cells[0].append(make("a", { href: `/run/${row.key}`, textContent: row.name }));
      return { key: row.key, box, cells, element: make("tr", {}, make("td", {}, box), ...cells) };
    };
    const fill = (line, row) => {
      const [name, state, best, trials, more, age] = line.cells;
      state.replaceChildren(pill(row));
      says(best, row.best);
      says(trials, String(row.trials));
      says(more, counts(row));
      says(age, since(row.changed));
      name.querySelectorAll(".tag").forEach((each) => each.remove());
      for (const tag of row.tags || []) name.append(make("span", { className: "tag", textContent: tag }));
      name.title = row.note || "";
    };
    const order = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const has = (row) => words.every((word) => `${row.name} ${row.state} ${(row.tags || []).join(" ")}`.toLowerCase().includes(word));
      const shown = [...runs.values()].filter(has).sort((a, b) => (b.state === "running") - (a.state === "running") || b.changed - a.changed || a.name.localeCompare(b.name));
      const now = shown.map((row) => lines.get(row.key).element);
      if (now.length !== body.children.length || now.some((each, k) => body.children[k] !== each)) {
        const held = document.activeElement;
        body.replaceChildren(...now);
        if (held && held.isConnected) held.focus();
      }
      says(total, words.length ? `${shown.length} of ${runs.size} runs` : `${runs.size} runs`);
    };
    listeners.push((changed) => {
      for (const each of changed) {
        const row = runs.get(each);
        if (!lines.has(each)) lines.set(each, lineOf(row));
        fill(lines.get(each), row);
      }
      for (const each of [...lines.keys()]) if (!runs.has(each)) lines.delete(each);
      order();
    });
    filter.addEventListener("input", order);
    setInterval(() => { for (const [each, line] of lines) says(line.cells[5], since(runs.get(each).changed)); }, 1000);
  };

  // --- a run --------------------------------------------------------------------------------------------------------
  const page = () => {
    const head = make("h1"), state = make("span", { id: "state" }), facts = make("div", { className: "facts" });
    state.setAttribute("role", "status");
    const body = make("div", { id: "sections" });
    const brushes = make("div", { className: "tools", id: "brushes", hidden: true });
    const panel = make("div", { id: "panel" });
    view.replaceChildren(make("div", { className: "title" }, head, state), facts, panel, body);
    const parts = new Map(); // name -> { mark, data, element }
    let charts = {}, about = {}, version = -1, busy = false, again = false, isBound = false, scales = [];

    const sectionOf = (name) => {
      const element = make("section", { id: `section-${name}` });
      const title = make("h2"), words = make("p", { className: "says" }), drawn = make("div"), html = make("div");
      element.append(title, words, drawn, html);
      return { element, title, words, drawn, html };
    };
    const fill = (name, part, data) => { // the places of charts stay, so that a zoom does
      says(part.title, data.title);
      says(part.words, data.says);
      part.words.hidden = !data.says;
      part.drawn.className = data.grid;
      while (part.drawn.children.length > data.charts.length) part.drawn.lastChild.remove();
      data.charts.forEach((chart, k) => {
        const id = `${name}/${k}`;
        if (!part.drawn.children[k]) {
          const inner = make("div");
          inner.dataset.chart = id;
          inner.style.height = `${chart.height}px`;
          part.drawn.append(make("div", {}, inner));
        }
      });
      if (part.said !== data.html) { part.html.innerHTML = data.html; part.said = data.html; } // escaped by the server
    };
    const arrange = (answer) => { // sections and facts; which charts are new
      const fresh = new Set();
      const names = answer.order.map(([name]) => name);
      for (const [name, part] of parts) if (!names.includes(name)) { part.element?.remove(); parts.delete(name); }
      for (const [name, mark] of answer.order) {
        const data = answer.parts[name];
        if (data === undefined) continue;
        const part = parts.get(name) || (name[0] === "*" ? {} : sectionOf(name));
        parts.set(name, Object.assign(part, { mark, data }));
        if (name[0] === "*") continue;
        fill(name, part, data);
        data.charts.forEach((_, k) => fresh.add(`${name}/${k}`));
      }
      const wanted = names.filter((name) => name[0] !== "*").map((name) => parts.get(name).element);
      wanted.forEach((element, k) => { if (body.children[k] !== element) body.insertBefore(element, body.children[k] || null); });
      const told = parts.get("*facts")?.data || [];
      facts.replaceChildren(...told.map(([name, value], k) => make("div", { className: k ? "fact" : "fact first" },
        make("b", { textContent: name }), make("span", { textContent: value }))));
      if (answer.parts["*run"]) drawPanel(answer.parts["*run"]);
      return fresh;
    };
    const first = async (answer) => { // the first picture: plotly.js takes half a second to begin
      arrange(answer);
      const [name] = answer.order.map(([each]) => each).filter((each) => each[0] !== "*" && parts.get(each).data.charts.length);
      if (!name) return;
      for (const place of parts.get(name).drawn.querySelectorAll("[data-chart]")) {
        deepbore.sketch(place, parts.get(name).data.charts[Number(place.dataset.chart.split("/")[1])]);
      }
    };
    const take = (answer) => {
      version = answer.version;
      const fresh = arrange(answer), names = answer.order.map(([name]) => name);
      charts = {};
      for (const name of names.filter((each) => each[0] !== "*")) {
        parts.get(name).data.charts.forEach((chart, k) => { charts[`${name}/${k}`] = chart; });
      }
      about = parts.get("*about")?.data || {};
      scales = parts.get("*scales")?.data || [];
      if (document.getElementById("trials") && !isBound) { deepbore.bind(); isBound = true; }
      const parallel = parts.get("parallel-coordinates");
      if (parallel && brushes.parentNode !== parallel.element) parallel.element.insertBefore(brushes, parallel.html);
      if (answer.parts["*scales"]) drawBrushes();
      deepbore.update({ charts, about, table: answer.parts["*table"] }, fresh);
      if (Object.keys(limits).length) brush();
    };
    const load = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        const known = [...parts.values()].map((part) => part.mark).join(",");
        const answer = await fetch(`/api/run/${encodeURIComponent(key)}?known=${known}`);
        if (!answer.ok) { says(state, await answer.text()); return; }
        const given = await answer.json();
        await drawable(() => first(given));
        take(given);
      } catch (error) {
        console.error(error);
      } finally {
        setTimeout(() => { busy = false; if (again) { again = false; load(); } }, 900); // once a second at most
      }
    };
    listeners.push((changed) => {
      const row = runs.get(key);
      if (!row) { says(state, "There is no such run."); return; }
      document.title = `${row.name} · deepbore`;
      says(head, row.name);
      state.replaceChildren(pill(row), make("span", { textContent: row.error || ` last change ${since(row.changed)} ago` }));
      if (changed.has(key) && row.version !== version) load();
    });
    setInterval(() => {
      const row = runs.get(key);
      if (row && !row.error && state.lastChild) says(state.lastChild, ` last change ${since(row.changed)} ago`);
    }, 1000);

    // --- brushes: trials within the ranges of parameters alone ------------------------------------------------------
    const limits = {}; // name of a parameter -> [low, high], or a set of choices
    const holds = (value, limit) => {
      if (value === null || value === undefined) return false;
      const plain = Array.isArray(value) ? value[0] : value;
      if (limit instanceof Set) return limit.has(String(plain));
      return Number(plain) >= limit[0] && Number(plain) <= limit[1];
    };
    const brush = () => {
      const names = Object.keys(limits);
      const places = names.map((name) => deepbore.columns().findIndex((column, k) => k > 0 && column.name === name));
      const left = deepbore.rows().filter((row) => names.every((name, k) => places[k] < 0 || holds(row[places[k]], limits[name])));
      deepbore.brush(names.length ? new Set(left.map((row) => row[0])) : null);
      const end = brushes.querySelector("#unbrush");
      if (end) end.disabled = !names.length;
    };
    const valueAt = (scale, share) => (scale.log ? scale.low * (scale.high / scale.low) ** share : scale.low + share * (scale.high - scale.low));
    const round = (value) => Number(value.toPrecision(4));
    const ofNumbers = (scale) => {
      const ends = ["least", "greatest"].map((which, k) => {
        const input = make("input", { type: "number", step: "any", placeholder: String(round(k ? scale.high : scale.low)), className: "end" });
        input.setAttribute("aria-label", `${which} ${scale.name}`);
        input.addEventListener("input", () => {
          const [low, high] = ends.map((each) => each.value);
          if (low === "" && high === "") delete limits[scale.name];
          else limits[scale.name] = [low === "" ? -Infinity : Number(low), high === "" ? Infinity : Number(high)];
          brush();
        });
        return input;
      });
      return ends;
    };
    const ofChoices = (scale) => scale.choices.map((choice) => {
      const box = make("input", { type: "checkbox", checked: true, value: String(choice) });
      box.addEventListener("change", () => {
        const boxes = [...box.closest("fieldset").querySelectorAll("input")];
        const on = boxes.filter((each) => each.checked);
        if (on.length === boxes.length) delete limits[scale.name];
        else limits[scale.name] = new Set(on.map((each) => each.value));
        brush();
      });
      return make("label", {}, box, ` ${choice}`);
    });
    const drawBrushes = () => {
      const made = JSON.stringify(scales.map((scale) => [scale.name, scale.choices]));
      if (brushes.dataset.made === made) return;
      brushes.dataset.made = made;
      brushes.hidden = !scales.length;
      brushes.replaceChildren(...scales.map((scale) => make("fieldset", {}, make("legend", { textContent: scale.name }),
        ...(scale.choices.length ? ofChoices(scale) : ofNumbers(scale)))),
      button("all trials", () => {
        for (const name of Object.keys(limits)) delete limits[name];
        for (const input of brushes.querySelectorAll("input")) { if (input.type === "checkbox") input.checked = true; else input.value = ""; }
        brush();
      }, { id: "unbrush", disabled: true }));
    };
    const set = (scale, low, high) => { // the range between two heights of an axis, from 0 to 1
      const fields = [...brushes.querySelectorAll("fieldset")].find((each) => each.querySelector("legend").textContent === scale.name);
      const inputs = [...fields.querySelectorAll("input")];
      if (scale.choices.length) {
        const n = scale.choices.length;
        inputs.forEach((box, k) => { const at = n > 1 ? k / (n - 1) : 0.5; box.checked = at >= low - 0.04 && at <= high + 0.04; });
        inputs[0].dispatchEvent(new Event("change"));
      } else {
        inputs[0].value = low <= 0 ? "" : round(valueAt(scale, low));
        inputs[1].value = high >= 1 ? "" : round(valueAt(scale, high));
        inputs[0].dispatchEvent(new Event("input"));
      }
    };
    body.addEventListener("pointerdown", (event) => { // a drag along an axis of the parallel coordinates
      const inner = event.target.closest?.("#section-parallel-coordinates [data-chart]");
      if (!inner || !inner._fullLayout || event.button) return;
      const { xaxis, yaxis } = inner._fullLayout, box = inner.getBoundingClientRect();
      const isTurned = inner.dataset.narrow === "true";
      const across = isTurned ? yaxis : xaxis, along = isTurned ? xaxis : yaxis;
      const at = (moved) => {
        const [x, y] = [moved.clientX - box.left, moved.clientY - box.top];
        return { axis: across.p2c((isTurned ? y : x) - across._offset), height: along.p2c((isTurned ? x : y) - along._offset) };
      };
      const begun = at(event), scale = scales[Math.round(begun.axis)];
      if (!scale || Math.abs(begun.axis - Math.round(begun.axis)) > 0.3) return;
      event.preventDefault();
      event.stopPropagation();
      const end = (moved) => {
        removeEventListener("pointerup", end);
        const [low, high] = [begun.height, at(moved).height].sort((a, b) => a - b);
        if (high - low < 0.02) set(scale, 0, 1);
        else set(scale, Math.max(0, low), Math.min(1, high));
      };
      addEventListener("pointerup", end);
    }, true);

    // --- notes, tags and commands -----------------------------------------------------------------------------------
    const answer = make("p", { className: "answer" });
    answer.setAttribute("role", "status");
    const send = async (said, where = answer) => {
      where.className = "answer";
      try {
        const { says: words } = await post(`/api/run/${encodeURIComponent(key)}/command`, said);
        says(where, words);
      } catch (error) {
        where.className = "answer refused";
        says(where, error.message);
      }
    };
    const labelled = (words, input) => make("label", { className: "field" }, make("span", { textContent: words }), input);
    const tagsOf = (input) => input.value.split(",").map((each) => each.trim()).filter(Boolean);
    const noteForm = (given, trial, where) => { // of a trial, or of the run
      const text = make("textarea", { rows: 2, value: given.note || "", maxLength: 10000 });
      const tags = make("input", { value: (given.tags || []).join(", ") });
      const of = trial === null ? {} : { trial };
      const keep = button("keep", () => send({ verb: "note", note: text.value, tags: tagsOf(tags), ...of }, where));
      return make("div", { className: "form" }, labelled("note", text), labelled("tags, separated by commas", tags), keep);
    };
    const fieldOf = (param) => {
      if (!param.choices.length) {
        const isNumber = param.low !== null && param.low !== undefined;
        return make("input", { type: isNumber ? "number" : "text", step: "any", name: param.name,
                               ...(isNumber ? { min: param.low, max: param.high, placeholder: `${round(param.low)} … ${round(param.high)}` } : {}) });
      }
      const select = make("select", { name: param.name }, make("option", { value: "", textContent: "–" }));
      param.choices.forEach((choice, k) => select.append(make("option", { value: String(k), textContent: String(choice) })));
      return select;
    };
    const paramsOf = (form, params) => Object.fromEntries(params.map((param, k) => [param, form.querySelectorAll("input, select")[k].value])
      .filter(([, value]) => value !== "").map(([param, value]) => [param.name, param.choices.length ? param.choices[Number(value)]
        : param.low === null || param.low === undefined ? value : Number(value)]));
    const paramForm = (params) => make("div", { className: "form row" }, ...params.map((param) => labelled(param.name, fieldOf(param))));
    let run = null, forms = null;
    const drawPanel = (given) => {
      const isFirst = run === null;
      run = given;
      if (isFirst) buildPanel();
      const { note, tags, waiting, malformed, answers, fixed, queue } = run;
      forms.note.replaceChildren(...tags.map((tag) => make("span", { className: "tag", textContent: tag })),
        ...(note ? [make("span", { className: "remark", textContent: note })] : []));
      const told = [
        ...waiting.map((each) => make("li", { className: "waits", textContent: `waits: ${each.says}` })),
        ...malformed.map((each) => make("li", { className: "refused", textContent: `what was left for this run is no command: ${each}` })),
        ...answers.slice(-5).reverse().map((each) => make("li", { className: each.refused ? "refused" : "",
          textContent: `${each.says}: ${each.refused || "done"}, ${since(each.at)} ago` })),
        ...(fixed.length ? [make("li", { textContent: `fixed: ${fixed.map(([name, value]) => `${name} = ${value}`).join(", ")}` })] : []),
        ...queue.map((part) => make("li", { textContent: `queued: ${JSON.stringify(part)}` })),
      ];
      forms.told.replaceChildren(...told);
    };
    const buildPanel = () => {
      forms = { note: make("div", { className: "remarks" }), told: make("ul", { className: "told" }) };
      const enqueued = paramForm(run.params), fixed = paramForm(run.params);
      const secret = make("input", { className: "secret", value: token, autocomplete: "off", spellcheck: false });
      secret.setAttribute("aria-label", "token");
      secret.addEventListener("input", () => { token = secret.value; try { sessionStorage.setItem("deepbore token", token); } catch { /* kept here */ } });
      const part = (verb, title, ...inner) => (run.verbs.includes(verb) ? [make("fieldset", {}, make("legend", { textContent: title }), ...inner)] : []);
      const commands = make("details", { id: "commands" }, make("summary", { textContent: "Change this run" }),
        ...part("note", "Note and tags of the run", noteForm(run, null, answer)),
        ...part("enqueue", "Try a configuration next; what is left empty is proposed", enqueued,
          button("enqueue", () => send({ verb: "enqueue", params: paramsOf(enqueued, run.params) }))),
        ...part("fix", "Fix parameters in later trials; with none all are free", fixed,
          button("fix", () => send({ verb: "fix", params: paramsOf(fixed, run.params) }))),
        ...part("stop", "End the run after its running trials", button("stop", () => send({ verb: "stop" }))),
        make("fieldset", {}, make("legend", { textContent: "Token, from the address that was printed" }), secret),
        make("p", { className: "why", textContent: run.why, hidden: !run.why }), answer);
      panel.replaceChildren(forms.note, ...(run.verbs.length && !isReadOnly ? [commands] : []), forms.told);
    };
    const size = (bytes) => (bytes < 1e4 ? `${bytes} B` : bytes < 1e7 ? `${Math.round(bytes / 1e3)} kB` : `${Math.round(bytes / 1e6)} MB`);
    const artifact = (each) => {
      if (!each.digest) return make("li", {}, make("b", { textContent: each.name }), ` ${size(each.size)}, at ${each.path}`);
      const address = `/api/run/${encodeURIComponent(key)}/artifact/${each.digest}`;
      const anchor = make("a", { href: address, textContent: each.name, download: each.name });
      const isPicture = /\.(png|jpe?g|gif)$/i.test(each.name) && each.size < 1e7;
      return make("li", {}, anchor, ` ${size(each.size)}`, ...(isPicture ? [make("img", { src: address, alt: each.name, loading: "lazy" })] : []));
    };
    deepbore.also((id) => { // in the dialog of a trial
      const logged = parts.get("*logged")?.data?.[id] || {};
      const found = [];
      if (logged.metrics?.length) {
        found.push(make("h3", { textContent: "Metrics, at the last step" }), make("div", { className: "pairs" }, ...logged.metrics.map(([name, value, n]) =>
          make("div", {}, make("b", { textContent: n > 1 ? `${name} (${n} steps)` : name }), make("span", { textContent: value === null ? "–" : String(Number(value.toPrecision(6))) })))));
      }
      if (logged.artifacts?.length) found.push(make("h3", { textContent: "Artifacts" }), make("ul", { className: "artifacts" }, ...logged.artifacts.map(artifact)));
      if (!run?.verbs.length || isReadOnly) {
        if (logged.note || logged.tags?.length) found.push(make("h3", { textContent: "Note" }), make("p", { textContent: [logged.note, ...(logged.tags || []).map((tag) => `[${tag}]`)].filter(Boolean).join(" ") }));
        return found;
      }
      const where = make("p", { className: "answer" });
      where.setAttribute("role", "status");
      const why = make("input", { maxLength: 500 });
      const again = () => {
        const row = deepbore.rows().find((each) => each[0] === id);
        const names = new Set(run.params.map((param) => param.name));
        const pairs = deepbore.columns().map((column, k) => [column.name, row[k]]).slice(3).filter(([name, value]) => names.has(name) && value !== null);
        send({ verb: "enqueue", params: Object.fromEntries(pairs.map(([name, value]) => [name, Array.isArray(value) ? value[0] : value])) }, where);
      };
      const withdrawal = [labelled("why", why), button("withdraw", () => send({ verb: "withdraw", trials: [id], reason: why.value }, where))];
      found.push(make("h3", { textContent: "Note and tags" }), noteForm(logged, id, where),
        make("div", { className: "form row" }, ...(run.verbs.includes("withdraw") ? withdrawal : []), button("try it again", again)), where);
      return found;
    });
    load(); // before the list is there
  };

  // --- several runs -------------------------------------------------------------------------------------------------
  const compare = () => {
    document.title = "side by side · deepbore";
    const keys = (new URLSearchParams(location.search).get("runs") || "").split(",").filter(Boolean);
    const inner = make("div"), left = make("p", { className: "note" }), body = make("tbody");
    inner.dataset.chart = "compare/0";
    inner.style.height = "440px";
    const heads = ["run", "state", "best", "trials", "last change"].map((name) => make("th", { scope: "col", textContent: name }));
    view.replaceChildren(make("section", {}, make("h1", { textContent: "Side by side" }),
      make("p", { className: "says", textContent: "The best value of each run after each finished trial. A click on a name in the legend hides its run." }), inner, left),
    make("section", {}, make("div", { className: "scroll" }, make("table", { className: "list" }, make("thead", {}, make("tr", {}, ...heads)), body))));
    let busy = false, again = false;
    const load = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        const answer = await fetch(`/api/compare?runs=${keys.map(encodeURIComponent).join(",")}`);
        const { chart, left_out } = await answer.json();
        await drawable(async () => { if (chart) deepbore.sketch(inner, chart); });
        left.textContent = left_out.join("; ");
        if (chart) deepbore.update({ charts: { "compare/0": chart }, about: {} }, new Set(["compare/0"]));
      } catch (error) {
        console.error(error);
      } finally {
        setTimeout(() => { busy = false; if (again) { again = false; load(); } }, 900);
      }
    };
    listeners.push((changed) => {
      body.replaceChildren(...keys.map((each) => runs.get(each)).filter(Boolean).map((row) => make("tr", {},
        make("td", {}, make("a", { href: `/run/${row.key}`, textContent: row.name })), make("td", {}, pill(row)),
        make("td", { textContent: row.best }), make("td", { textContent: String(row.trials) }), make("td", { textContent: since(row.changed) }))));
      if (keys.some((each) => changed.has(each))) load();
    });
  };

  const begin = async () => {
    if (isOpen && token) await post("/api/session").catch(() => {});
    ({ run: page, compare }[place] || list)();
    listen();
  };
  begin();
})();
