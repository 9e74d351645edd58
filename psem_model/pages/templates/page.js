"use strict";
(() => {
  const pages = [...document.querySelectorAll(".page")];
  const links = [...document.querySelectorAll("nav a")];
  const title = document.title;

  // texts are deflated JSON, of all claims; markup, obligations and their lines are numbers of them
  const unpacked = () => {
    const packed = document.getElementById("texts").textContent;
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };
  let texts = null;
  const known = () => texts ??= unpacked();
  const read = async (steps) => {  // an obligation's lines: so many further on, or less a number
    const lines = await known();
    let at = 0;
    return steps.map((step) => lines[at = step > 0 ? at + step : -step]).join("\n");
  };
  const take = async (list, name) => {  // a text, once
    const number = list.dataset[name];
    delete list.dataset[name];
    return (await known())[number];
  };
  const unpackMarkup = async (part) => {
    part.innerHTML = await take(part, "markup");
    await Promise.all([...part.querySelectorAll("[data-markup]")].map(unpackMarkup));
  };
  const unpack = async (list) => {
    const made = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
    for (const [name, rule, odd, steps] of JSON.parse(await take(list, "obligations"))) {
      const details = made("details", ""), summary = made("summary", name + " ");
      summary.append(made("small", [rule, odd].filter(Boolean).join(", ")));
      details.append(summary);
      details.addEventListener("toggle", async () => {
        const pre = made("pre", await read(steps));
        pre.tabIndex = 0;
        details.append(pre);
      }, { once: true });
      const item = made("li", "");
      item.append(details);
      list.append(item);
    }
  };

  // one page at a time, by the address after #
  const show = (moved) => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = (id && (document.getElementById(id) || document.getElementById(id.toUpperCase()))) || pages[0];
    if (!target) return;
    const page = target.closest(".page") || pages[0];
    for (const each of pages) each.classList.toggle("shown", each === page);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const top = page.classList.contains("claim-page") ? "claims" : page.id;
    if (window.DecompressionStream) {
      for (const list of page.querySelectorAll("[data-obligations]")) unpack(list);
      for (const list of page.querySelectorAll("[data-markup]")) unpackMarkup(list);
    }
    for (const link of links) {
      if (link.hash === "#" + top) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const head = page.querySelector("h1");
    document.title = page === pages[0] || !head ? title : head.innerText.split("\n")[0] + " – psem";
    if (!moved) return;
    const left = history.state;  // where the reader was when this page was left
    if (left) {
      const link = document.links[left.link];
      if (link && page.contains(link)) link.focus({ preventScroll: true });
      scrollTo(0, left.top);
    } else if (target === page) {
      scrollTo(0, 0);
      if (head) head.focus({ preventScroll: true });
    } else target.scrollIntoView();
  };
  if (pages.length > 1) {
    document.documentElement.classList.add("js");
    const leave = (link) => history.replaceState({ top: scrollY, link }, "");
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (link) leave([...document.links].indexOf(link));
    });
    addEventListener("pagehide", () => leave(-1));
    history.scrollRestoration = "manual";
    addEventListener("hashchange", () => show(true));
    const begun = () => show(location.hash !== "" || history.state !== null);
    begun();
    addEventListener("load", begun);
  }

  // filters of the claims
  const form = document.getElementById("filters");
  if (form) {
    const claims = [...document.querySelectorAll("li.claim")];
    // what the card says of a claim, and its page: scope and source; the caveat also as it was typed
    const wordsOf = (claim) => {
      const page = document.getElementById(claim.dataset.id), found = [claim.dataset.area, claim.dataset.caveat];
      for (const part of [claim, ...page.querySelectorAll(".about")]) {
        const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) found.push(texts.currentNode.data);
      }
      return found.join(" ").toLowerCase().replace(/\s+/g, " ");
    };
    const texts = new Map(claims.map((claim) => [claim, wordsOf(claim)]));
    const filter = () => {
      const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
      const { verdict, area, axiom } = Object.fromEntries(
        ["verdict", "area", "axiom"].map((name) => [name, form.elements[name].value]));
      let count = 0;
      for (const claim of claims) {
        const has = claim.dataset, axioms = has.axioms.split(" ").filter(Boolean);
        const text = texts.get(claim);
        const fits = words.every((word) => text.includes(word))
          && (!verdict || has.verdict === verdict) && (!area || has.area === area)
          && (!axiom || (axiom === "none" ? axioms.length === 0 : axioms.includes(axiom)));
        claim.hidden = !fits;
        count += fits;
      }
      for (const part of document.querySelectorAll(".area")) {
        part.hidden = !part.querySelector("li.claim:not([hidden])");
      }
      document.getElementById("shown").value = `${count} of ${claims.length} shown`;
    };
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // what pays a term is marked while the term is pointed at, or has the focus
  for (const term of document.querySelectorAll("[data-payers]")) {
    const mark = (on) => () => {
      for (const id of term.dataset.payers.split(" ")) document.getElementById(id).classList.toggle("pays", on);
    };
    for (const [event, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) {
      term.addEventListener(event, mark(on));
    }
  }

  // a run, line by line
  for (const player of document.querySelectorAll(".player")) {
    const rows = [...player.querySelectorAll("tbody tr")];
    const wrong = rows.findIndex((row) => row.classList.contains("first-wrong"));
    const controls = player.querySelector(".controls"), status = controls.querySelector("[role=status]");
    let at = rows.length - 1;
    const places = {
      first: () => 0, back: () => Math.max(at - 1, 0), on: () => Math.min(at + 1, rows.length - 1),
      wrong: () => (wrong < 0 ? rows.length - 1 : wrong), all: () => rows.length - 1,
    };
    const go = (where) => {
      at = places[where]();
      rows.forEach((row, number) => {
        row.classList.toggle("later", number > at);
        row.classList.toggle("now", number === at && where !== "all");
      });
      status.textContent = `line ${at + 1} of ${rows.length}` + (at === wrong ? ": the first wrong value" : "");
    };
    controls.hidden = false;
    controls.addEventListener("click", (event) => {
      if (event.target.dataset.go) go(event.target.dataset.go);
    });
    controls.addEventListener("keydown", (event) => {
      const where = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "all" }[event.key];
      if (where) { event.preventDefault(); go(where); }
    });
  }
})();
