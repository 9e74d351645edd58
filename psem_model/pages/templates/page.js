"use strict";
(() => {
  const pages = [...document.querySelectorAll(".page")];
  const links = [...document.querySelectorAll("nav a")];
  const title = document.title;

  // one page at a time, by the address after #
  const show = (moved) => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = (id && document.getElementById(id)) || pages[0];
    if (!target) return;
    const page = target.closest(".page") || pages[0];
    for (const each of pages) each.classList.toggle("shown", each === page);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const top = page.classList.contains("claim-page") ? "claims" : page.id;
    for (const link of links) {
      if (link.hash === "#" + top) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const head = page.querySelector("h1");
    document.title = page === pages[0] || !head ? title : head.innerText.split("\n")[0] + " – psem";
    if (!moved) return;
    if (target === page) {
      scrollTo(0, 0);
      if (head) head.focus({ preventScroll: true });
    } else target.scrollIntoView();
  };
  if (pages.length > 1) {
    document.documentElement.classList.add("js");
    addEventListener("hashchange", () => show(true));
    show(location.hash !== "");
    addEventListener("load", () => show(location.hash !== ""));
  }

  // filters of the claims
  const form = document.getElementById("filters");
  if (form) {
    const claims = [...document.querySelectorAll("li.claim")];
    const filter = () => {
      const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
      const { verdict, area, axiom } = Object.fromEntries(
        ["verdict", "area", "axiom"].map((name) => [name, form.elements[name].value]));
      let count = 0;
      for (const claim of claims) {
        const has = claim.dataset, axioms = has.axioms.split(" ").filter(Boolean);
        const text = (claim.textContent + " " + has.area).toLowerCase();
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
})();
