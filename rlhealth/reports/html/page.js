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
    const count = box.closest(".bar").querySelector(".count");
    box.addEventListener("input", () => {
      const cards = [...document.getElementById(box.dataset.for).querySelectorAll(".mini")];
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
    const box = [...document.querySelectorAll("#find-run, input[data-for]")].find((one) => one.offsetParent !== null);
    if (box) { event.preventDefault(); box.focus(); }
  });

  // Which runs are shown: by verdict, and by text in their line of the table.
  const pills = [...document.querySelectorAll(".filters [data-verdict]")];
  const find = document.getElementById("find-run");
  const lines = [...document.querySelectorAll(".runs tbody tr")];
  const sift = () => {
    const wanted = new Set(pills.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.verdict));
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const text = line.textContent.toLowerCase();
      line.hidden = (wanted.size > 0 && !wanted.has(line.dataset.verdict)) || !words.every((word) => text.includes(word));
      shown += line.hidden ? 0 : 1;
      const link = line.querySelector("a");
      const section = link && document.getElementById(link.hash.slice(1));
      if (section) section.hidden = line.hidden;
    }
    find.closest(".search").querySelector(".count").textContent = shown < lines.length ? `${shown} of ${lines.length}` : "";
  };
  for (const pill of pills) {
    pill.addEventListener("click", () => {
      pill.setAttribute("aria-pressed", pill.getAttribute("aria-pressed") === "true" ? "false" : "true");
      sift();
    });
  }
  if (find) {
    find.addEventListener("input", sift);
    find.addEventListener("keydown", (event) => { if (event.key === "Escape") { find.value = ""; sift(); } });
  }

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
    for (let one = details; one; one = one.parentElement.closest("details")) { one.hidden = false; one.open = true; }
    if (details) rlhealthCharts.draw(details);
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
    for (const one of document.querySelectorAll("details.run")) { if (one.querySelector(".story")) one.open = true; rlhealthCharts.draw(one); }
  });
})();
