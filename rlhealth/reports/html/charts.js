"use strict";
// Charts: what they show, one crosshair over those of a run, zoom, log scale, another run over them, and the small ones drawn
// when their run is opened. The path's x is the step itself; data-v holds the values of its points, else its y tells them.
const rlhealthCharts = (() => {
  const SVG = (() => { const holder = document.createElement("template"); holder.innerHTML = "<svg></svg>"; return holder.content.firstChild.namespaceURI; })();
  const home = (svg) => svg.closest("details.run, main");
  const all = (root) => [...root.querySelectorAll(".chart svg")].filter((svg) => svg.querySelector(".line") && !svg.closest(".runs"));
  const made = (name, attributes) => {
    const one = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    return one;
  };

  // What a chart holds: points [x, y, value], its scale, and the whole span of x.
  const state = (svg) => {
    if (svg.state) return svg.state;
    const view = svg.viewBox.baseVal;
    const { low, high, log } = svg.dataset;
    const scale = { low: Number(low), high: Number(high), log: log !== undefined };
    const given = svg.dataset.v ? svg.dataset.v.split(" ").map(Number) : null;
    const found = [];
    for (const piece of svg.querySelector(".line").getAttribute("d").split("M").slice(1)) {
      const [start, rest] = piece.split("l");
      let [x, y] = start.split(" ").map(Number);
      const moves = (rest.match(/-?\d+/g) || []).map(Number);
      for (let i = 0; i + 1 < moves.length; i += 2) {
        x += moves[i]; y += moves[i + 1];
        found.push([x, y, given ? given[found.length] : decoded(y, view.height, scale, svg.dataset.least), i === 0]);
      }
    }
    const limits = [...svg.querySelectorAll(".limit")].map((one) => [one, decoded(Number(one.getAttribute("d").match(/M0 (-?[\d.]+)/)[1]), view.height, scale)]);
    const bands = [...svg.querySelectorAll(".usual, .beyond")].map((one) => {
      const top = Number(one.getAttribute("y")), bottom = top + Number(one.getAttribute("height"));
      return [one, top <= 0 ? Infinity : decoded(top, view.height, scale), bottom >= view.height ? -Infinity : decoded(bottom, view.height, scale)];
    });
    svg.state = { points: found, own: scale, scale, wide: view.width, tall: view.height, from: Number(svg.dataset.first), exact: !!given, limits, bands, over: null };
    return svg.state;
  };
  const decoded = (y, tall, scale, least) => {
    const share = 1 - y / tall;
    if (scale.log) return least !== undefined && y >= Number(least) ? 0 : 10 ** (Math.log10(scale.low) + share * (Math.log10(scale.high) - Math.log10(scale.low)));
    const value = scale.low + share * (scale.high - scale.low);
    return Math.abs(value) < Math.abs(scale.high - scale.low) / tall ? 0 : value;
  };
  const height = (value, tall, scale) => {
    if (value === Infinity) return 0;
    if (value === -Infinity) return tall;
    const [low, high, at] = scale.log ? [scale.low, scale.high, Math.max(value, scale.low)].map(Math.log10) : [scale.low, scale.high, value];
    return Math.max(-0.5 * tall, Math.min(1.5 * tall, tall * (1 - (at - low) / (high - low))));
  };
  const line = (points, tall, scale, shift) => points.map(([x, , value, begins]) => `${begins ? "M" : "L"}${x + shift} ${height(value, tall, scale).toFixed(1)}`).join("");

  // Draws a chart anew on a scale that holds its own points, its limits and those of the run laid over it.
  const redraw = (svg, log) => {
    const one = state(svg);
    const values = [...one.points, ...(one.over ? one.over.points : [])].map((point) => point[2]).filter(Number.isFinite);
    let [low, high] = [one.own.low, one.own.high];
    if (one.over) [low, high] = [Math.min(low, one.over.own.low), Math.max(high, one.over.own.high)];
    const positive = values.filter((value) => value > 0);
    const can = positive.length > 0 && values.every((value) => value >= 0);
    if (log && can) [low, high] = [Math.min(...positive) / 1.1, Math.max(...positive) * 1.1];
    else if (one.own.log && !log) { const pad = 0.04 * (Math.max(...values) - Math.min(...values) || 1); [low, high] = [Math.min(...values) - pad, Math.max(...values) + pad]; }
    one.scale = { low, high, log: log && can };
    svg.querySelector(".line").setAttribute("d", line(one.points, one.tall, one.scale, 0));
    for (const [path, value] of one.limits) path.setAttribute("d", `M0 ${height(value, one.tall, one.scale)}H${one.wide}`);
    for (const [rect, top, bottom] of one.bands) {
      const [y, end] = [height(top, one.tall, one.scale), height(bottom, one.tall, one.scale)];
      rect.setAttribute("y", y);
      rect.setAttribute("height", Math.max(0, end - y));
    }
    svg.querySelector(".other")?.remove();
    if (one.over) svg.append(made("path", { class: "other", d: line(one.over.points, one.tall, one.scale, one.over.from - one.from) }));
    const box = svg.parentElement;
    box.classList.toggle("rescaled", one.scale.low !== one.own.low || one.scale.high !== one.own.high || one.scale.log !== one.own.log);
    box.dataset.scale = one.scale.log ? "log" : "";
  };

  // The point nearest to the pointer, or the arrow keys on a focused chart; a line at its step in every chart of the run.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const written = (value, percent, exact) => {
    const scaled = percent ? 100 * value : value;
    const digits = exact ? 5 : 3;
    const text = Math.abs(scaled) >= 1e7 || (scaled !== 0 && Math.abs(scaled) < 1e-3) ? scaled.toExponential(digits - 1) : String(Number(scaled.toPrecision(digits)));
    return percent ? `${text} %` : text;
  };
  let crossed = [];
  const uncross = () => { for (const one of crossed) one.remove(); crossed = []; };
  const near = (points, x) => {
    let low = 0, high = points.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (points[middle][0] < x) low = middle + 1; else high = middle; }
    return low > 0 && x - points[low - 1][0] <= points[low][0] - x ? low - 1 : low;
  };
  const show = (svg, index) => {
    const one = state(svg);
    const [x, , value] = one.points[index];
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    svg.shown = index;
    const percent = svg.dataset.percent !== undefined;
    let said = `step ${one.from + x}: ${written(value, percent, one.exact)}`;
    if (one.over && one.over.points.length) said += `, ${one.over.name}: ${written(one.over.points[near(one.over.points, x + one.from - one.over.from)][2], percent, one.over.exact)}`;
    tip.textContent = said;
    tip.hidden = false;
    const left = box.left + ((x - view.x) / view.width) * box.width;
    const y = height(value, one.tall, one.scale);
    tip.style.left = `${scrollX + Math.max(4, Math.min(left - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${scrollY + box.top + (Math.min(Math.max(y, 0), one.tall) / one.tall) * box.height - tip.offsetHeight - 8}px`;
    uncross();
    for (const other of all(home(svg))) {
      const from = state(other).from;
      const at = one.from + x - from;
      const cross = made("path", { class: "cross", d: `M${at} 0V${state(other).tall}` });
      other.append(cross);
      crossed.push(cross);
    }
  };
  const step = (svg, clientX) => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    return view.x + ((clientX - box.left) / box.width) * view.width;
  };
  const hide = () => { tip.hidden = true; uncross(); };

  // Zoom: a stretch that is dragged over fills every chart of the run; a double click, or "whole run", shows all of it.
  let drag = null;
  const zoom = (root, first, last) => {
    for (const svg of all(root)) {
      const one = state(svg);
      const [x, wide] = first === null ? [0, one.wide] : [first - one.from, Math.max(1, last - first)];
      svg.setAttribute("viewBox", `${x} 0 ${wide} ${one.tall}`);
    }
    root.classList.toggle("zoomed", first !== null);
    for (const ruler of root.querySelectorAll(".axis")) ruler.hidden = first !== null;
    const tools = root.querySelector(".tools");
    if (!tools) return;
    tools.querySelector(".whole-tool").hidden = first === null;
    tools.querySelector(".drag-hint").textContent = first === null ? "drag to zoom" : `steps ${Math.round(first)} to ${Math.round(last)}`;
  };
  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest?.(".chart svg");
    if (svg && event.button === 0 && !svg.closest(".runs")) drag = { svg, from: step(svg, event.clientX), x: event.clientX };
  });
  document.addEventListener("pointermove", (event) => {
    if (drag) {
      drag.svg.querySelector(".chosen")?.remove();
      const [a, b] = [drag.from, step(drag.svg, event.clientX)].sort((one, other) => one - other);
      if (Math.abs(event.clientX - drag.x) > 6) drag.svg.append(made("rect", { class: "chosen", x: a, y: 0, width: b - a, height: state(drag.svg).tall }));
    }
    const svg = event.target.closest?.(".chart svg");
    if (!svg || !svg.querySelector(".line")) { hide(); return; }
    const points = state(svg).points;
    if (points.length) show(svg, near(points, step(svg, event.clientX)));
  });
  document.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { svg, from, x } = drag;
    drag = null;
    svg.querySelector(".chosen")?.remove();
    if (Math.abs(event.clientX - x) <= 6) return;
    const base = state(svg).from;
    const [a, b] = [from, step(svg, event.clientX)].sort((one, other) => one - other);
    zoom(home(svg), base + Math.max(0, a), base + Math.min(state(svg).wide, b));
  });
  document.addEventListener("pointercancel", () => { drag?.svg.querySelector(".chosen")?.remove(); drag = null; });
  document.addEventListener("dblclick", (event) => { const svg = event.target.closest?.(".chart svg"); if (svg) zoom(home(svg), null); });
  document.addEventListener("pointerleave", hide);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    const svg = document.activeElement.closest?.(".chart svg");
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!svg) return;
    if (event.key === "Escape") zoom(home(svg), null);
    const last = state(svg).points.length - 1;
    if (!way || last < 0) return;
    event.preventDefault();
    const fast = event.shiftKey ? Math.ceil(last / 20) : 1;
    show(svg, svg.shown === undefined ? (way > 0 ? 0 : last) : Math.max(0, Math.min(last, svg.shown + way * fast)));
  });

  // The small charts of a run that came as data.
  const node = (name, className, text) => {
    const one = document.createElement(name);
    if (className) one.className = className;
    if (text !== undefined) one.textContent = text;
    return one;
  };
  const SIGNS = { critical: "✗", warning: "▲", info: "i" };
  const card = ([name, tag, unit, ends, tone, first, wide, tall, low, high, log, d, onset, spoken]) => {
    const figure = node("figure", "mini");
    figure.dataset.find = `${name} ${tag || name}`.toLowerCase();
    const caption = node("figcaption");
    caption.append(node("code", "", name));
    if (unit && unit !== "%") caption.append(node("span", "unit", unit));
    if (tone) { const sign = node("span", `sign ${tone}`, SIGNS[tone]); sign.setAttribute("role", "img"); sign.setAttribute("aria-label", tone); caption.append(sign); }
    const svg = made("svg", { viewBox: `0 0 ${wide} ${tall}`, preserveAspectRatio: "none", role: "img", "aria-label": spoken || `${name}: ${ends} ${unit}` });
    Object.assign(svg.dataset, { name, first, low, high });
    if (log) svg.dataset.log = "";
    if (unit === "%") svg.dataset.percent = "";
    svg.append(made("path", { class: "line", d }));
    if (onset !== null) svg.append(made("path", { class: "onset", d: `M${onset - first} 0V${tall}` }));
    const chart = node("div", "chart");
    chart.append(svg);
    const said = node("p", "ends");
    said.append(node("span", "", ends));
    figure.append(caption, chart, said);
    return figure;
  };
  const list = ([title, lines]) => {
    const said = JSON.parse(document.getElementById("spelled").content.textContent);
    const details = node("details");
    const items = lines.map(([why, rules]) => node("li", "", [typeof why === "number" ? said[why] : why, rules.map((one) => said[one]).join(", ")].filter(Boolean).join(": ")));
    const all = node("ul");
    all.append(...items);
    details.append(node("summary", "", title), all);
    return details;
  };
  const draw = (root) => {
    const template = root.querySelector(".minis > template");
    if (template) template.replaceWith(...JSON.parse(template.content.textContent).map(card));
    for (const cell of root.querySelectorAll(".vitals [data-curve]:empty")) {
      const source = all(root).find((svg) => svg.dataset.name === cell.dataset.curve && svg.closest(".mini"));
      if (source) cell.append(source.parentElement.cloneNode(true));
    }
    const rules = root.querySelector(".rules > template");
    if (rules) rules.replaceWith(...JSON.parse(rules.content.textContent).map(list));
    equip(root);
  };

  // The tools of a run: log scale, the whole run, another run over this one.
  const others = () => [...document.querySelectorAll("details.run")].filter((one) => one.querySelector(".chart, .minis"));
  const overlay = (root, other) => {
    if (other) draw(other);
    const known = new Map();
    if (other) for (const svg of all(other)) if (!known.has(svg.dataset.name)) known.set(svg.dataset.name, state(svg));
    const name = other ? other.querySelector("h2").textContent : "";
    const pressed = root.querySelector(".log-tool").getAttribute("aria-pressed");
    for (const svg of all(root)) {
      const found = known.get(svg.dataset.name);
      state(svg).over = found ? { points: found.points, own: found.own, from: found.from, exact: found.exact, name } : null;
      redraw(svg, pressed === "true" || (pressed === "false" && state(svg).own.log && !root.dataset.asked));
    }
  };
  const equip = (root) => {
    const tools = root.querySelector(".tools");
    if (!tools || !tools.hidden) return;
    tools.hidden = false;
    const button = tools.querySelector(".log-tool");
    button.addEventListener("click", () => {
      const log = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(log));
      root.dataset.asked = "1";
      for (const svg of all(root)) redraw(svg, log);
    });
    tools.querySelector(".whole-tool").addEventListener("click", () => zoom(root, null));
    const choice = tools.querySelector("select");
    const runs = others().filter((one) => one !== root);
    if (!runs.length) return;
    choice.closest("label").hidden = false;
    choice.addEventListener("focus", () => {
      if (choice.length > 1) return;
      for (const one of runs) { const option = node("option", "", one.querySelector("h2").textContent); option.value = one.id; choice.append(option); }
    }, { once: true });
    choice.addEventListener("change", () => overlay(root, choice.value ? document.getElementById(choice.value) : null));
  };
  for (const run of document.querySelectorAll("details.run")) {
    if (run.open) draw(run);
    run.addEventListener("toggle", () => { if (run.open) draw(run); });
  }
  if (!document.querySelector("details.run")) equip(document.querySelector("main"));
  return { draw };
})();
