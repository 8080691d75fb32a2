from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic import ROOT
from synthetic_answers import EFFECTS

import chromium
from ahalab.report.html import build_report
from ahalab.store.layout import StudyPaths

playwright = chromium.playwright
expect = playwright.expect
SECTIONS = (
    "verdict", "paired", "arms", "training", "reward", "groups", "lengths", "scorers",
    "reflection", "alarms", "tables", "answers", "provenance",
)  # fmt: skip
GAINED, LOST = EFFECTS["correctness"][0][0]  # strict, the first seed

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with chromium.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(page: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def opened(browser: playwright.Browser, address: str) -> Iterator[playwright.Page]:
    """The report from disk: it must ask nobody, run nothing foreign, and raise nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
    page.set_default_timeout(10_000)
    page.goto(address)
    yield page
    assert {url.partition("#")[0] for url in asked} == {address}
    assert faults == []
    context.close()


def test_each_section_is_reached_from_the_contents(opened: playwright.Page) -> None:
    links = opened.locator("nav a")
    assert [link.get_attribute("href") for link in links.all()] == [f"#{id}" for id in SECTIONS]
    for number, name in enumerate(SECTIONS):
        links.nth(number).click()
        expect(opened.locator(f"section#{name} h2").first).to_be_in_viewport()


def test_what_is_folded_opens_from_the_keyboard(opened: playwright.Page) -> None:
    numbers = opened.locator("#reward figure").first.locator("details")
    numbers.locator("summary").focus()
    opened.keyboard.press("Enter")
    expect(numbers.locator("table")).to_be_visible()
    opened.keyboard.press("Enter")
    expect(numbers.locator("table")).to_be_hidden()


def gained(page: playwright.Page) -> playwright.Locator:
    return page.locator(f'a[aria-label^="correctness, seed 0, strict: {GAINED} gained"]')


def assert_gained_answers(page: playwright.Page) -> None:
    expect(page.locator("#count")).to_have_text(f"1 to 20 of {GAINED} pairs")
    expect(page.locator("#h-answers")).to_be_focused()
    cards = page.locator(".card")
    expect(cards).to_have_count(20)
    assert set(cards.locator("summary .who").all_inner_texts()) == {"correctness, seed 0"}
    assert set(cards.locator("summary .tag").all_inner_texts()) == {"strict gained"}
    base, adapter = cards.nth(19).locator("pre").all()  # opened, and not only listed
    expect(base).to_be_visible()
    assert "####" not in base.inner_text()
    assert "####" in adapter.inner_text()


def test_a_gained_segment_leads_to_its_answers_by_mouse(opened: playwright.Page) -> None:
    gained(opened).click()
    assert_gained_answers(opened)
    opened.locator("#next").click()
    expect(opened.locator("#count")).to_have_text(f"21 to 40 of {GAINED} pairs")
    gained(opened).click()  # the address stays, and it must still lead there
    assert_gained_answers(opened)


def test_a_gained_segment_leads_to_its_answers_by_keyboard(opened: playwright.Page) -> None:
    lost = opened.locator(f'a[aria-label^="correctness, seed 0, strict: {LOST} lost"]')
    lost.focus()
    opened.keyboard.press("Tab")
    expect(gained(opened)).to_be_focused()
    opened.keyboard.press("Enter")
    assert_gained_answers(opened)


@pytest.mark.parametrize("change", ["lost", "both right", "both wrong"])
def test_every_segment_leads_to_as_many_answers_as_it_counts(
    opened: playwright.Page, change: str
) -> None:
    segment = opened.locator(f'a[aria-label*="random, seed 2, lenient:"][aria-label*="{change}."]')
    count = segment.locator("text").text_content()
    segment.click()
    expect(opened.locator("#count")).to_have_text(re.compile(f" of {count} pairs$"))
    assert set(opened.locator(".card .tag").all_inner_texts()) == {f"lenient {change}"}


def test_the_list_of_a_sample_says_that_it_is_one(
    browser: playwright.Browser, study: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahalab.report.answers.MAX_BYTES", 60_000)
    file = tmp_path / "report.html"
    file.write_text(build_report(study, ROOT), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    gained(page).click()
    expect(page.locator("#count")).to_have_text(
        re.compile(r"^1 to \d+ of \d+ pairs in the sample on this page$")
    )
    page.close()


def test_filters_stand_in_the_address_and_come_back_from_it(opened: playwright.Page) -> None:
    opened.locator("select[name=arm]").select_option("historical")
    opened.locator("select[name=change]").select_option("lost")
    opened.locator("input[name=text]").fill("MARBLES")
    count = opened.locator("#count").inner_text()
    assert "#answers?arm=historical&metric=strict&change=lost&text=MARBLES" in opened.url
    opened.reload()
    expect(opened.locator("#count")).to_have_text(count)
    expect(opened.locator("select[name=arm]")).to_have_value("historical")
    opened.locator("input[name=text]").fill("nothing holds this")
    expect(opened.locator("#count")).to_have_text("No pair of answers on this page fits.")


def test_hostile_completions_are_shown_as_text(opened: playwright.Page) -> None:
    opened.locator("select[name=change]").select_option("")
    opened.locator("select[name=arm]").select_option("random")
    opened.locator("select[name=seed]").select_option("0")
    opened.locator("#open").click()
    shown = [
        text for text in opened.locator(".card pre").all_inner_texts() if "marbles" not in text
    ]
    for expected in (
        "</script><img src=x onerror=alert(1)>",
        "</pre></li></ol></textarea><script>alert(document.domain)</script>",
        "abc\\u202egnp.exe\\u2066 isolates \\u200bzero",
        "^[[31mred^[[0m ^[]52;c;aGk=^G \\x9b1m",
        "NUL^@ and ^? and ^M carriage, ^A^B^C marks",
        '" onmouseover="alert(2)" x="',
        "[x](javascript:alert(3)) <a href='javascript:alert(4)'>x</a> http://evil.example/x.js",
    ):
        assert expected in shown
    assert opened.locator(".card .ctl").first.inner_text() == "\\u202e"
    for never in ("img", "textarea", "a[href^=javascript]", "[onmouseover]", "[onerror]"):
        assert opened.locator(never).count() == 0
    assert opened.locator("script").count() == 3
    seen = opened.evaluate("document.documentElement.innerText")
    assert not re.search("[\x00-\x08\x0e-\x1f\u200b\u202a-\u202e\u2066\ue000]", seen)


def test_a_script_that_was_slipped_in_does_not_run(
    browser: playwright.Browser, address: str
) -> None:
    page = browser.new_page()
    page.goto(address)
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"owned=1\">')"
    )
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'owned=1'}))"
    )
    page.wait_for_timeout(100)
    assert page.evaluate("typeof owned") == "undefined"
    page.close()


def test_paper_leaves_out_what_needs_a_screen(opened: playwright.Page) -> None:
    opened.emulate_media(media="print")
    expect(opened.locator("nav")).to_be_hidden()
    expect(opened.locator("#filters")).to_be_hidden()
    expect(opened.locator("#cards")).to_be_hidden()
    expect(opened.get_by_text("The list of answers is left out on paper.")).to_be_visible()
    expect(opened.locator("#paired svg.chart").first).to_be_visible()


# One panel of each kind of folded content: the rest is more of the same, and takes axe minutes.
FOLDED = "header details, #verdict details, #reward figure:first-of-type details, #paired > details"


@pytest.mark.parametrize(
    ("width", "scheme", "rules"),
    [(1280, "light", ""), (1280, "dark", "color-contrast"), (400, "light", "color-contrast"),
     (400, "dark", "")],
)  # fmt: skip
def test_axe_finds_no_serious_fault_in_the_report(
    browser: playwright.Browser, address: str, width: int, scheme: str, rules: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(f"{address}#answers?arm=correctness&seed=0&metric=strict&change=gained")
    page.locator(".card pre").first.wait_for()
    page.evaluate(f"document.querySelectorAll('{FOLDED}').forEach((one) => {{ one.open = true; }})")
    faults = chromium.serious_faults(page, **({"runOnly": [rules]} if rules else {}))
    assert faults == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
