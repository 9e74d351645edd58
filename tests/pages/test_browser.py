"""The whole report in headless Chromium: no complaint, filters, keys, links, and a phone's width."""

import json
import re
from collections import Counter

import pytest

from psem_model.commands.cli import main
from psem_model.pages.claims import twins
from psem_model.text import places
from tests.support.browser import Browser, chromium
from tests.support.html import TEXTS, outside, read
from tests.support.proved import all_proved

LARGEST = 2_200_000  # bytes of the page

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("proved_once")]

PHONE, WIDE = 360, 1400
CLAIM_PAGES = re.compile(r'<section class="page claim-page".*?</section>', re.DOTALL)
SHOWN = "document.querySelector('.page.shown').id"
WIDTH = "document.documentElement.scrollWidth"
MARKED = "[...document.querySelectorAll('.pays')].map((each) => each.id)"
PLACES = "[...document.querySelectorAll('nav a')].map((link) => link.hash)"
CLAIMS = "[...document.querySelectorAll('li.claim:not([hidden])')].map((each) => each.dataset.id)"
FOCUS = "document.activeElement"
EVERY_PAGE = """(() => {
  const found = [], pages = [...document.querySelectorAll('.page')];
  for (const page of pages) {
    for (const other of pages) other.classList.toggle('shown', other === page);
    for (const part of page.querySelectorAll('details')) part.open = true;
    found.push([page.id, document.documentElement.scrollWidth]);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A folder in which `psem prove` and `psem report` have run."""
    folder = tmp_path_factory.mktemp("build")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "BUILD", folder)
        patch.setattr("psem_model.audit.proving.results", all_proved)
        for command in ("prove", "report"):
            with pytest.raises(SystemExit) as stopped:
                main([command])
            assert stopped.value.code == 0
    return folder


@pytest.fixture(scope="module")
def whole(build):
    """The report, read."""
    return read((build / "report.html").read_text())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium brings it")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def at(build, browser):
    """at("E1", width=360): the browser, with a page of the report."""

    def open_(page="", width=WIDE, dark=False, file="report.html"):
        browser.complaints.clear()
        browser.open(f"file://{build / file}{'#' * bool(page)}{page}", width, dark=dark)
        return browser

    yield open_
    assert browser.complaints == []


# ------------------------------------------------------------------------------ the file
def test_the_whole_page_is_small_and_stands_alone(build, whole):
    assert (build / "report.html").stat().st_size <= LARGEST
    assert outside(whole) == []


def test_a_tenth_more_claims_would_fit(build):
    text = (build / "report.html").read_text()
    of_claims = sum(len(part.encode()) for part in (*CLAIM_PAGES.findall(text), *TEXTS.findall(text)))
    assert len(text.encode()) + of_claims / 10 <= LARGEST


def test_every_number_of_the_report_is_on_the_page(build, whole):
    sections = [each for each in whole.all("section") if "id" in each.attributes]
    by_id = {each.attributes["id"]: each for each in sections}
    assert len(by_id) == len(sections)
    entries = json.loads((build / "report.json").read_text())["claims"]
    verdicts = Counter(entry["verdict"] for entry in entries)
    head = whole.one("h1", id="claims-title").text
    assert head == f"{len(entries)} claims: {verdicts['proved']} proved, {verdicts['refuted']} refuted"
    obligations = sum(entry["obligations"] for entry in entries)
    assert f"{obligations:,} in" in by_id["claims"].one("dl").text
    for entry in entries:
        of = by_id[entry["id"]].one("dl")
        figures = {div.one("dt").text: div.one("dd").text for div in of.all("div")}
        assert figures["obligations"] == f"{entry['obligations']:,}"
        assert figures["time of z3 and kernel"] == f"{entry['seconds'] * 1000:,.0f} ms"
        assert figures["axioms"] == (", ".join(entry["axioms"]) or "none")


def test_the_counterexamples_that_stand_for_dropped_hypotheses_are_those_of_the_proofs(build):
    entries = {e["id"]: e for e in json.loads((build / "report.json").read_text())["claims"]}
    for claim, drops in twins()["drops"].items():
        for name, by in drops.items():
            assert name in entries[claim]["hypotheses"] or " " in name
            for id, theorem in (each.split("/") for each in by):
                assert entries[id]["counterexample"][theorem]
    refuted = {id for id, entry in entries.items() if entry["verdict"] == "refuted"}
    assert twins()["beside"].keys() == refuted


# ------------------------------------------------------------------------------ in the browser
@pytest.mark.parametrize("dark", [False, True])
def test_each_page_is_as_wide_as_a_phone_at_most(dark, at):
    wider = [(id, width) for id, width in at("", PHONE, dark).run(EVERY_PAGE) if width > PHONE]
    assert wider == []


def test_tables_of_pictures_and_terms_of_costs_fit_a_phone_without_scrolling(at):
    wider = """[...document.querySelectorAll('.page.shown .charts table, .page.shown .term math')]
      .filter((each) => each.getBoundingClientRect().width > each.closest('.scroll').clientWidth + 0.5)
      .map((each) => each.textContent)"""
    for page in ("pictures", "strategies"):
        browser = at(page, PHONE)
        browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert browser.run(wider) == []


def test_one_page_is_shown_at_a_time_and_links_lead_to_others(at):
    browser = at()
    assert browser.run(SHOWN) == "claims"
    for place in browser.run(PLACES):
        browser.run(f"document.querySelector('nav a[href=\"{place}\"]').click()")
        assert browser.run(f"new Promise((end) => setTimeout(() => end({SHOWN}), 20))") == place[1:]
        assert browser.run("document.querySelector('nav [aria-current]').hash") == place


def test_a_link_into_a_page_shows_it_and_opens_what_it_is_in(at):
    browser = at("run-unsafe_wrong_group")
    assert browser.run(SHOWN) == "runs"
    assert browser.run("document.getElementById('run-unsafe_wrong_group').open")


def test_the_way_back_is_the_browsers_own(at):
    browser = at()
    browser.run("document.querySelector('a[href=\"#E1\"]').click()")
    assert browser.run(f"new Promise((end) => setTimeout(() => end({SHOWN}), 20))") == "E1"
    assert browser.run("document.title").startswith("E1")
    browser.run("history.back()")
    assert browser.run(f"new Promise((end) => setTimeout(() => end({SHOWN}), 50))") == "claims"


def test_the_way_back_leads_to_where_the_list_was_left(at):
    browser = at(width=PHONE)
    link = "document.querySelector('li.claim a[href=\"#E8\"]')"
    browser.run(f"{link}.scrollIntoView()")
    before = browser.run("scrollY")
    assert before > 1000
    browser.run(f"{link}.click()")
    after = "new Promise((end) => setTimeout(() => end([scrollY, document.activeElement.id]), 100))"
    assert browser.run(after) == [0, "E8-title"]
    browser.run("history.back()")
    assert browser.run(after)[0] == before
    assert browser.run("document.activeElement.hash") == "#E8"
    browser.run("history.forward()")
    assert browser.run(after)[0] == 0


@pytest.mark.parametrize(
    ("words", "id"),
    [
        ("M6", "M6"),  # id
        ("optimal rings schedule", "C5"),  # statement
        ("signsgd epsilon", "E5"),  # caveat
        ("exactly at n = 8", "M6"),  # scope
        ("initialisation", "E7"),  # source
    ],
)
def test_words_are_looked_for_in_all_that_a_claim_says_of_itself(words, id, at):
    browser = at()
    browser.run("document.forms[0].elements.words.focus()")
    browser.type(words)
    found = browser.run(CLAIMS)
    assert id in found
    assert len(found) < 10


def test_filters_leave_the_claims_that_fit(at, build):
    entries = json.loads((build / "report.json").read_text())["claims"]
    browser = at()

    def chosen(name, value):
        browser.run(
            f"(() => {{ const field = document.forms[0].elements.{name}; field.value = '{value}'; "
            "field.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        return browser.run(CLAIMS)

    assert chosen("verdict", "refuted") == [e["id"] for e in entries if e["verdict"] == "refuted"]
    both = [e["id"] for e in entries if e["verdict"] == "refuted" and e["area"] == "equivalence"]
    assert chosen("area", "equivalence") == both
    assert (
        browser.run("document.getElementById('shown').value") == f"{len(both)} of {len(entries)} shown"
    )
    chosen("verdict", ""), chosen("area", "")
    assert chosen("axiom", "none") == [e["id"] for e in entries if not e["axioms"]]


def test_the_report_is_used_with_the_keyboard_alone(at):
    browser = at()
    browser.press("Tab")
    assert browser.run(f"{FOCUS}.className") == "skip"
    browser.press("Tab", 10)  # the name, eight pages, then the words of the filter
    assert browser.run(f"{FOCUS}.name") == "words"
    browser.type("M8")
    assert "M8" in browser.run(CLAIMS)
    browser.press("Tab", 4)
    assert browser.run(f"{FOCUS}.className") == "id"
    browser.press("Enter")
    found = browser.run(f"new Promise((end) => setTimeout(() => end({SHOWN}), 20))")
    assert found == browser.run(f"{FOCUS}.id").removesuffix("-title")


def test_what_pays_a_term_is_marked_while_the_term_has_the_focus(at):
    browser = at("strategies")
    term = "document.querySelector('[data-payers~=zero3-4]')"
    browser.run(f"{term}.focus()")
    assert "zero3-4" in browser.run(MARKED)
    browser.run(f"{term}.blur()")
    assert browser.run(MARKED) == []


def test_a_run_is_stepped_through_with_keys_to_its_first_wrong_value(at):
    browser = at("run-mean_twice")
    run = "document.getElementById('run-mean_twice')"
    status = f"{run}.querySelector('[role=status]').textContent"
    later = f"{run}.querySelectorAll('tr.later').length"
    browser.run(f"{run}.querySelector('[data-go=first]').focus()")
    browser.press("Enter")
    assert browser.run(status).startswith("line 1 of ")
    before = browser.run(later)
    browser.press("ArrowRight")
    assert browser.run(later) == before - 1
    browser.run(f"{run}.querySelector('[data-go=wrong]').click()")
    assert browser.run(status).endswith("the first wrong value")
    assert browser.run(f"{run}.querySelector('tr.now').className").startswith("first-wrong")
    browser.press("End")
    assert browser.run(later) == 0


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "zero1(dp=16) * tp(8)", "--config", "llama-3-70b", "--sequence", "8192"],
        ["compare", "zero1", "zero3", "--psi", "70B", "--devices", "64"],
        ["check", "examples/token_mean_local_counts.toml"],
    ],
    ids=lambda args: args[0],
)
def test_the_page_of_a_plan_is_as_wide_as_a_phone_at_most(args, at, build):
    with pytest.raises(SystemExit):
        main([*args, "--html", str(build / "plan.html")])
    assert at(width=PHONE, file="plan.html").run(WIDTH) == PHONE


CUT = """[...document.querySelectorAll('.stacked, .page.shown figure svg, .number')]
  .filter((each) => each.getClientRects().length && each.getBoundingClientRect().right > innerWidth)
  .map((each) => each.textContent)"""
SIDEWAYS = """[...document.querySelectorAll('.stacked')]
  .filter((each) => each.scrollWidth > each.clientWidth).length"""
BROKEN = """[...document.querySelectorAll('.number')]
  .filter((each) => each.getClientRects().length > 1).length"""


@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_no_number_and_no_picture_is_cut_or_broken_on_any_window(at, psem, build, width):
    model = ("--config", "llama-3-70b", "--sequence", "8192")
    psem("predict", "zero1(2) * tp+sp(8) * pp(4)", *model, "--html", build / "long.html")
    psem("compare", "zero1(16) * tp(8)", "zero3(128)", *model, "--html", build / "long2.html")
    for file in ("long.html", "long2.html"):
        browser = at(width=width, file=file)
        assert (browser.run(CUT), browser.run(SIDEWAYS), browser.run(BROKEN)) == ([], 0, 0)
    assert at("pictures", width=width).run(CUT) == []


def test_the_obligations_of_a_claim_are_unpacked_and_open_to_their_texts(at, build):
    entries = {e["id"]: e for e in json.loads((build / "report.json").read_text())["claims"]}
    for claim in ("M8", "S1", "C1"):
        browser = at(claim)
        items = f"document.querySelectorAll('#{claim} .obligations li')"
        count = f"new Promise((end) => setTimeout(() => end({items}.length), 300))"
        assert browser.run(count) == entries[claim]["obligations"]
        browser.run(f"{items}[0].querySelector('summary').click()")
        text = f"new Promise((end) => setTimeout(() => end({items}[0].textContent), 300))"
        assert "(check-sat)" in browser.run(text)


@pytest.mark.parametrize("claim", ["T2", "K5", "S1"])
def test_the_tree_of_theorems_is_there_and_opens_to_what_each_is_made_from(at, claim):
    browser = at(claim)
    tree = f"document.querySelector('#{claim} .tree')"
    opened = f"""new Promise((end) => setTimeout(() => {{
      const all = [...{tree}.querySelectorAll('details')];
      all.forEach((each) => {{ each.open = true; }});
      end(all.filter((each) => each.querySelector('li').offsetParent).length - all.length);
    }}, 300))"""
    assert browser.run(opened) == 0
    assert browser.run(f"{tree}.querySelectorAll('summary').length") > 0


def test_a_counterexample_is_stepped_through_to_the_formula_that_fails(at):
    browser = at("M8")
    player = "document.querySelector('#M8 .player')"
    browser.run(f"{player}.querySelector('[data-go=first]').click()")
    assert browser.run(f"{player}.querySelectorAll('tr.later').length") > 3
    browser.run(f"{player}.querySelector('[data-go=wrong]').click()")
    assert browser.run(f"{player}.querySelector('tr.now').className").startswith("first-wrong")


def test_without_its_script_every_page_is_there(at, build):
    text = (build / "report.html").read_text()
    before, _, rest = text.rpartition("<script>")
    (build / "plain.html").write_text(before + rest.rpartition("</script>")[2])
    browser = at(file="plain.html")
    hidden = "[...document.querySelectorAll('.page')].filter((page) => !page.offsetParent).length"
    assert browser.run(hidden) == 0


@pytest.mark.parametrize("page", ["claims", "E1", "strategies", "pictures"])
def test_words_stand_out_from_what_is_behind_them_light_and_dark(page, at):
    contrast = """(() => {
      const shade = (color) => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
          .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const behind = (e) => {
        for (; e; e = e.parentElement) {
          const color = getComputedStyle(e).backgroundColor;
          if (!/rgba\\(.*, 0\\)/.test(color)) return color;
        }
        return 'rgb(255, 255, 255)';
      };
      const words = '.page.shown :is(p, a, h1, h2, small, li, dt, span)';
      return Math.min(...[...document.querySelectorAll(words)]
        .filter((e) => e.offsetParent && e.textContent.trim()).map((e) => {
          const [a, b] = [shade(getComputedStyle(e).color), shade(behind(e))].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        }));
    })()"""
    for dark in (False, True):
        assert at(page, dark=dark).run(contrast) >= 4.5
