"use strict";
(() => {
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("rlhealth-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.classList.add(kept);
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.remove("dark", "light");
    root.classList.add(dark ? "light" : "dark");
    try { localStorage.setItem("rlhealth-theme", dark ? "light" : "dark"); } catch { /* a page from a mail may not keep anything */ }
  });

  // Search: hides the small charts whose name does not hold every word.
  for (const box of document.querySelectorAll("input[data-for]")) {
    const cards = [...document.getElementById(box.dataset.for).children];
    const count = box.closest(".bar").querySelector(".count");
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const card of cards) {
        card.hidden = !wanted.every((word) => card.dataset.find.includes(word));
        shown += card.hidden ? 0 : 1;
      }
      count.textContent = wanted.length ? `${shown} of ${cards.length}` : "";
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { box.value = ""; box.dispatchEvent(new Event("input")); }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    const box = [...document.querySelectorAll("input[data-for]")].find((one) => one.offsetParent !== null);
    if (box) { event.preventDefault(); box.focus(); }
  });

  // Sorting: the buttons in the head of the table.
  for (const button of document.querySelectorAll(".runs thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const place = [...head.parentElement.children].indexOf(head);
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = head.closest("table").tBodies[0];
      const key = (row) => {
        const cell = row.cells[place];
        if (!cell) return null;
        if (button.dataset.kind === "text") return cell.textContent;
        const number = Number(cell.dataset.sort);
        return Number.isNaN(number) || cell.dataset.sort === undefined ? null : number;
      };
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  }

  // A link to a run opens it.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const details = target.closest("details");
    if (details) details.open = true;
    // Again until it stays there: charts that were off screen get their true height on the way, and the browser may still be
    // scrolling smoothly to where the heading was. A key, the wheel or a finger ends it.
    let frames = 40, still = 0;
    const stop = () => { frames = 0; };
    for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) addEventListener(kind, stop, { once: true, passive: true });
    const go = () => {
      const before = scrollY;
      target.scrollIntoView({ behavior: "instant", block: "start" });
      still = Math.abs(scrollY - before) < 1 ? still + 1 : 0;
      if (still < 8 && frames-- > 0) requestAnimationFrame(go);
    };
    go();
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details.run")) if (one.querySelector(".story")) one.open = true;
  });

  // Reading a chart: the point nearest to the pointer, or the arrow keys on a focused chart. The path's x is the step itself.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const points = (svg) => {
    if (svg.points) return svg.points;
    const found = [];
    for (const piece of svg.querySelector(".line").getAttribute("d").split("M").slice(1)) {
      const [start, rest] = piece.split("l");
      let [x, y] = start.split(" ").map(Number);
      const moves = (rest.match(/-?\d+/g) || []).map(Number);
      for (let i = 0; i + 1 < moves.length; i += 2) { x += moves[i]; y += moves[i + 1]; found.push([x, y]); }
    }
    svg.points = found;
    return found;
  };
  const written = (value, percent) => {
    const scaled = percent ? 100 * value : value;
    const text = Math.abs(scaled) >= 1e7 || (scaled !== 0 && Math.abs(scaled) < 1e-3) ? scaled.toExponential(2) : String(Number(scaled.toPrecision(3)));
    return percent ? `${text} %` : text;
  };
  const value = (svg, y) => {
    const { low, high, log } = svg.dataset;
    const share = 1 - y / svg.viewBox.baseVal.height;
    const exact = log === undefined ? Number(low) + share * (Number(high) - Number(low)) : 10 ** (Math.log10(low) + share * (Math.log10(high) - Math.log10(low)));
    const span = Math.abs(Number(high) - Number(low));
    if (svg.dataset.least !== undefined && y >= Number(svg.dataset.least)) return `≤ ${written(exact, svg.dataset.percent !== undefined)}`;
    const shown = log === undefined && Math.abs(exact) < span / svg.viewBox.baseVal.height ? 0 : exact;
    return written(shown, svg.dataset.percent !== undefined);
  };
  const show = (svg, index) => {
    const [x, y] = points(svg)[index];
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    svg.shown = index;
    tip.textContent = `step ${Number(svg.dataset.first) + x}: ${value(svg, y)}`;
    tip.hidden = false;
    const left = box.left + (x / view.width) * box.width;
    tip.style.left = `${scrollX + Math.max(4, Math.min(left - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${scrollY + box.top + (Math.min(Math.max(y, 0), view.height) / view.height) * box.height - tip.offsetHeight - 8}px`;
  };
  const nearest = (svg, clientX) => {
    const box = svg.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let best = -1;
    points(svg).forEach(([at], index, all) => { if (best < 0 || Math.abs(at - x) < Math.abs(all[best][0] - x)) best = index; });
    return best;
  };
  document.addEventListener("pointermove", (event) => {
    const svg = event.target.closest?.(".chart svg");
    if (!svg) { tip.hidden = true; return; }
    const index = nearest(svg, event.clientX);
    if (index >= 0) show(svg, index);
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("keydown", (event) => {
    const svg = document.activeElement.closest?.(".chart svg");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!svg || !step || !points(svg).length) return;
    event.preventDefault();
    const last = points(svg).length - 1;
    const fast = event.shiftKey ? Math.ceil(last / 20) : 1;
    show(svg, svg.shown === undefined ? (step > 0 ? 0 : last) : Math.max(0, Math.min(last, svg.shown + step * fast)));
  });
  document.addEventListener("focusout", () => { tip.hidden = true; });
})();
