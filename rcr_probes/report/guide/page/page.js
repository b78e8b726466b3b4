"use strict";
// Everything here is a convenience: without it the page says the same.
(() => {
  const says = document.body.dataset;
  const make = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const target = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));

  // The language switch keeps the place: the one in the address, or else the section being read.
  const sections = [...document.querySelectorAll("main > section")];
  const reading = () => sections.filter((one) => one.getBoundingClientRect().top < 120).at(-1);
  for (const link of document.querySelectorAll(".languages a")) {
    const page = link.getAttribute("href");
    const keep = () => {
      const read = scrollY > 200 && reading();
      link.href = page + (location.hash || (read ? "#" + read.id : ""));
    };
    for (const kind of ["pointerdown", "focus", "click"]) link.addEventListener(kind, keep);
    for (const kind of ["hashchange", "chosen"]) addEventListener(kind, keep);
    keep();
  }

  // A table whose rows are shown as lists is one still, to who listens: some browsers forget it.
  const roles = {
    table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell",
    'th[scope="col"]': "columnheader", 'th[scope="row"]': "rowheader",
  };
  for (const [kind, role] of Object.entries(roles)) {
    const wanted = kind === "table" ? "table.stack" : ".stack " + kind;
    for (const part of document.querySelectorAll(wanted)) part.setAttribute("role", role);
  }

  // What scrolls by itself says so, where it does.
  const wide = [...document.querySelectorAll(".wide")];
  const scrolls = () => {
    for (const one of wide) {
      const before = one.previousElementSibling;
      const hint = before && before.className === "sideways" ? before : null;
      const needed = one.scrollWidth > one.clientWidth + 1;
      if (needed && !hint) {
        const made = make("p", { className: "sideways" }, says.sideways);
        made.setAttribute("aria-hidden", "true");
        one.before(made);
      }
      if (!needed && hint) hint.remove();
    }
  };
  addEventListener("resize", scrolls);
  document.addEventListener("toggle", scrolls, true);  // what is folded away has no width
  document.fonts.ready.then(scrolls);

  // Tables: filter and sort.
  const collator = new Intl.Collator(document.documentElement.lang, { numeric: true });
  for (const table of document.querySelectorAll("table.tools")) {
    const body = table.tBodies[0], rows = [...body.rows];
    const count = make("output", {}, "");
    const search = make("input", { type: "search" });
    const label = make("label", {}, says.filter + " ", search);
    const narrow = () => {
      const words = search.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const held = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => held.includes(word));
      }
      count.value = says.shown + rows.filter((row) => !row.hidden).length + " / " + rows.length;
    };
    search.addEventListener("input", narrow);
    table.parentElement.before(make("p", { className: "control filter" }, label, count));
    table.tHead.rows[0].dataset.sort = says.sort;
    narrow();
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[place].textContent.trim();
        rows.sort((a, b) => collator.compare(key(a), key(b)) * (down ? -1 : 1));
        body.append(...rows);
      });
    });
  }

  // The chooser looks up a row of its table; the row's id is the choice in the address.
  const form = document.getElementById("chooser"), answer = document.getElementById("decision");
  const prefix = "decide-";
  const chosen = () => {
    const given = new FormData(form);
    const declared = given.getAll("capability").join("-") || "none";
    return prefix + [given.get("identity"), given.get("effect"), declared].join("-");
  };
  const decide = () => {
    const row = document.getElementById(chosen());
    const part = (place) => [...row.cells[place].cloneNode(true).childNodes];
    answer.dataset.decision = row.dataset.decision;
    answer.dataset.way = row.dataset.way;
    const link = make("a", { href: "#" + row.id }, answer.dataset.link);
    answer.replaceChildren(
      make("p", {}, ...part(3)), ...part(4), ...part(5), make("p", { className: "control" }, link));
  };
  const restore = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id.startsWith(prefix) || !document.getElementById(id)) return false;
    const [identity, effect, ...capability] = id.slice(prefix.length).split("-");
    for (const input of form.elements) {
      if (input.type === "radio") input.checked = [identity, effect][+(input.name === "effect")] === input.value;
      if (input.type === "checkbox") input.checked = capability.includes(input.value);
    }
    decide();
    document.getElementById("decisions").open = false;  // the address alone had it unfolded
    document.getElementById("choose").scrollIntoView();
    return true;
  };
  form.hidden = answer.hidden = false;
  form.addEventListener("change", () => {
    decide();
    history.replaceState(null, "", "#" + chosen());
    dispatchEvent(new Event("chosen"));
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  // A link into something that is folded away opens it.
  const reveal = () => {
    if (restore()) return;
    const found = target();
    const folded = found && found.closest("details");
    if (folded && !folded.open) {
      folded.open = true;
      found.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  addEventListener("load", () => setTimeout(reveal));  // the browser follows the address last
  decide();
  reveal();

  // Pointing at a claim or a capture, or moving to it, shows the capture in short.
  const peek = make("div", { id: "peek", hidden: true });
  peek.setAttribute("role", "tooltip");
  document.body.append(peek);
  let held = null, leaving = 0;
  const hide = () => {
    if (held) held.removeAttribute("aria-describedby");
    held = null;
    peek.hidden = true;
  };
  const captureOf = (named) => {  // of a claim, the first that it rests on
    if (!named || named.id.startsWith("capture-")) return named;
    const first = named.querySelector('a[href^="#capture-"]');
    return first && document.getElementById(first.getAttribute("href").slice(1));
  };
  const show = (link) => {
    clearTimeout(leaving);
    if (held === link) return;
    const capture = captureOf(document.getElementById(link.getAttribute("href").slice(1)));
    if (!capture) return;
    hide();
    held = link;
    const title = make("p", {}, ...capture.querySelector("summary").cloneNode(true).childNodes);
    const gist = capture.querySelector(".gist").cloneNode(true);
    peek.replaceChildren(title, gist, make("p", { className: "hint" }, says.peek));
    peek.hidden = false;
    link.setAttribute("aria-describedby", "peek");
    const at = link.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - peek.offsetWidth - 16);
    const below = at.bottom + peek.offsetHeight < innerHeight;
    peek.style.left = Math.max(left, 8) + scrollX + "px";
    peek.style.top = (below ? at.bottom : Math.max(at.top - peek.offsetHeight, 0)) + scrollY + "px";
  };
  const about = (event) => event.target.closest && event.target.closest('main a[href^="#capture-"], main a[href^="#claim-"]');
  document.addEventListener("pointerover", (event) => {
    if (about(event)) show(about(event));
    else if (peek.contains(event.target)) clearTimeout(leaving);
  });
  document.addEventListener("pointerout", (event) => {
    if (about(event) || peek.contains(event.target)) leaving = setTimeout(hide, 250);
  });
  document.addEventListener("focusin", (event) => (about(event) ? show(about(event)) : hide()));
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("click", hide);
})();
