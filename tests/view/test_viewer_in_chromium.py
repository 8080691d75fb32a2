from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewed_study import HOSTILE_SEEN, batch, make_hostile, step_row, write_viewed
from viewer_server import Running, start, wait_for_index, wait_for_rows
from watching import Watched, assert_accessible, current, watching

import chromium

playwright = chromium.playwright
expect = playwright.expect
CELL = "cell=arms/correctness/seed-2"

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with chromium.launched() as browser:
        yield browser


@pytest.fixture
def watched(browser: playwright.Browser, running: Running) -> Iterator[Watched]:
    with watching(browser, running) as watched:
        yield watched


def test_the_token_leaves_the_address_and_a_cookie_no_script_reads_stays(watched: Watched) -> None:
    page = watched.page
    assert page.url == watched.running.base + "/"
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.reload()
    page.wait_for_selector("table")


def test_the_runs_are_there_with_status_and_progress(watched: Watched) -> None:
    row = watched.page.locator("tbody tr").first
    assert row.locator("th").inner_text() == "correctness · 1"
    # Nothing holds its lock, so it runs until its last commit is 20 s old.
    assert row.locator(".status").inner_text() in ("● running", "■ stopped")
    assert row.locator("progress").first.get_attribute("value") == "3"
    assert "3/5" in row.inner_text()
    assert "33.3 %" in watched.page.locator("tbody tr", has_text="noise floor").inner_text()


def test_every_figure_has_a_chart_of_its_own_with_its_arms(watched: Watched, study: str) -> None:
    page = watched.open(study, "curves", "canvas")
    titles = page.locator("figcaption").all_inner_texts()
    assert titles[:2] == ["Reward", "correct_strict component, mean"]
    assert len(titles) == page.locator("canvas").count()
    told = page.locator(".plot").first.get_attribute("aria-label")
    # seeds 1 and 2 at step 3: 0.21 and 0.22
    assert told == (
        "Reward, mean of the seeds by step: correctness 0.215 at step 3; random 0.215 at step 3"
    )
    page.locator("#legend button", has_text="random").click()
    page.wait_for_url("**/curves?hide=1")
    assert "random" not in (page.locator(".plot").first.get_attribute("aria-label") or "")
    page.reload()
    page.wait_for_selector("canvas")
    button = page.locator("#legend button", has_text="random")
    assert button.get_attribute("aria-pressed") == "false"


def test_a_step_leads_to_its_groups_and_their_cards(watched: Watched, study: str) -> None:
    page = watched.open(study, "steps?run=arms/correctness/seed-2&step=1", ".card")
    assert page.locator(".advantage").all_inner_texts() == ["▲ +1.50"] + ["▽ −0.50"] * 3
    chips = page.locator(".card").first.locator(".chips").inner_text()
    assert " ".join(chips.split()) == "correct_strict 1 × 1 = 1 reward 1"
    said = " ".join(page.locator(".card").nth(1).locator("footer").inner_text().split())
    assert said.startswith("training parser ✗ wrong strict ✗ wrong lenient ✓ correct")
    page.keyboard.press("j")
    page.wait_for_url("**group=1*")
    expect(page.locator(".advantage").first).to_contain_text("0.00")
    page.keyboard.press("]")
    page.wait_for_url("**step=2*")
    expect(page.locator("#step")).to_have_value("2")
    page.keyboard.press("[")
    expect(page.locator("#step")).to_have_value("1")


def test_a_filter_is_in_the_address_and_a_reload_gives_the_same(
    watched: Watched, study: str
) -> None:
    page = watched.open(study, "rollouts", ".card")
    assert page.locator("#pager").inner_text().startswith("104 rollouts")
    page.keyboard.press("/")
    page.keyboard.type("tokens>20 outcome=wrong -sample*")
    page.keyboard.press("Enter")
    expect(page.locator("#detail")).to_contain_text("No rollout is like that.")
    page.fill("#filter", "tokens>20 outcome=wrong seed=2")
    expect(page.locator("#pager")).to_contain_text("30 rollouts")
    page.keyboard.press("Escape")
    page.select_option("#sort", "-advantage")
    expect(page.locator("#list a").nth(1)).to_contain_text("−0.50")  # 0.00 as generated
    page.keyboard.press("j")
    expect(page.locator("#list a").nth(1)).to_have_attribute("aria-current", "true")
    expect(page.locator("#detail")).to_contain_text("step 1, group 0, sample 2")
    before = (page.url, current(page), page.locator("#detail").inner_text())
    page.reload()
    page.wait_for_selector(".card")
    page.wait_for_selector("#list a[aria-current]")
    assert (page.url, current(page), page.locator("#detail").inner_text()) == before
    assert page.input_value("#filter") == "tokens>20 outcome=wrong seed=2"
    assert page.input_value("#sort") == "-advantage"


def test_pages_are_turned_by_key(watched: Watched, study: str) -> None:
    page = watched.open(study, "rollouts", ".card")
    page.keyboard.press("n")
    expect(page.locator("#pager")).to_contain_text("2 / 3")
    page.keyboard.press("p")
    expect(page.locator("#pager")).to_contain_text("1 / 3")
    assert page.url.endswith("/rollouts")


def test_a_fault_in_a_filter_stands_beside_it(watched: Watched, study: str) -> None:
    page = watched.open(study, "rollouts", ".card")
    page.fill("#filter", "tokes>5")
    page.wait_for_selector("#filter[aria-invalid]")
    told = page.locator("#filter-fault").inner_text()
    assert told.startswith("filter:1: expected a field, found 'tokes'. Did you mean tokens?")
    page.fill("#filter", "tokens>5")
    page.wait_for_selector("#filter:not([aria-invalid])")
    watched.faults.clear()  # Chromium notes the reply 400


def test_a_gained_pair_is_followed_and_aligned_word_by_word(watched: Watched, study: str) -> None:
    page = watched.open(study, f"compare?{CELL}", ".pair")
    page.keyboard.press("g")
    page.wait_for_url("**show=gained*")
    expect(page.locator("#pager")).to_contain_text("3 pairs")
    page.locator("#list a").nth(1).click()
    base, adapter = (page.locator(".pair .card").nth(n) for n in (0, 1))
    expect(base.locator(".text")).to_have_text("The answer is 7.")
    assert adapter.locator(".text").inner_text() == "#### 7"
    assert adapter.locator(".new").inner_text() == "####"
    assert base.locator(".text mark").inner_text() == "7"
    assert adapter.locator(".text mark").get_attribute("title") == "taken by the rule hashes"
    assert "rule hashes" in " ".join(adapter.locator(".took").inner_text().split())
    page.keyboard.press("d")
    page.wait_for_url("**diff=off*")
    expect(page.locator("#detail .text .new")).to_have_count(0)
    page.keyboard.press("l")
    page.wait_for_url("**show=lost*")
    expect(page.locator("#pager")).to_contain_text("2 pairs")
    page.keyboard.press("]")
    page.wait_for_url("**random%2Fseed-1*")
    page.go_back()
    expect(page.locator("#pager")).to_contain_text("2 pairs")


def test_the_keys_are_listed_and_fields_of_the_filter_named(watched: Watched, study: str) -> None:
    page = watched.open(study, "compare", ".pair")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] .fields")
    assert "base.tokens" in page.locator("dialog").inner_text()
    page.keyboard.press("j")  # the list behind stays where it is
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="hidden")
    assert page.url.endswith("/compare")


def test_hostile_text_is_shown_and_not_obeyed(watched: Watched, study: str) -> None:
    page = watched.open(study, "rollouts?q=owned", ".card")
    assert page.locator(".card .text").inner_text() == HOSTILE_SEEN
    assert page.locator(".card .text .ctl").first.inner_text() == "\\u202e"
    reflects = page.locator(".card .facts").inner_text()
    assert "reflects: <script>" in reflects
    page.goto(f"{watched.running.base}/study/{study}/compare?cell=arms/correctness/seed-1&q=owned")
    page.wait_for_selector(".pair")
    assert page.locator(".pair .text").nth(1).inner_text() == HOSTILE_SEEN
    page.goto(f"{watched.running.base}/study/{study}/answers?q=owned")
    page.wait_for_selector(".card")
    assert page.locator(".card .text").inner_text() == HOSTILE_SEEN
    for never in (
        "img",
        "textarea",
        "a[href^=javascript]",
        "main script",
        "[onclick]",
        "[onerror]",
    ):
        assert page.locator(never).count() == 0
    assert page.title() == "Answers · small · Aha Lab"
    seen = page.evaluate("document.documentElement.innerText")
    assert not re.search("[\x00-\x08\x0e-\x1f\u200b\u202a-\u202e\u2028\ue000]", seen)


def test_the_policy_refuses_a_script_that_was_slipped_in(watched: Watched) -> None:
    page = watched.page
    for slipped in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"owned=1\">')",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'owned=1'}))",
    ):
        with pytest.raises(playwright.Error, match="Trusted"):
            page.evaluate(slipped)
    assert page.evaluate("typeof owned") == "undefined"
    watched.faults.clear()  # Chromium tells of both


PAGES = {
    "runs": "",
    "curves": "curves",
    "steps": "steps?run=arms/correctness/seed-1&step=3",
    "rollouts": "rollouts?q=tokens>10",
    "compare": "compare?cell=arms/correctness/seed-1&show=gained",
}


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("runs", 1280, "light"), ("curves", 400, "dark"), ("steps", 1280, "dark"),
     ("rollouts", 400, "light"), ("compare", 1280, "light"), ("compare", 400, "dark")],
)  # fmt: skip
def test_axe_finds_no_serious_fault(
    browser: playwright.Browser, running: Running, study: str, name: str, width: int, scheme: str
) -> None:
    path = f"study/{study}/{PAGES[name]}" if PAGES[name] else ""
    assert_accessible(browser, running, path, width, scheme)


def test_curves_and_runs_go_on_while_a_study_trains(
    browser: playwright.Browser, tmp_path: Path
) -> None:
    viewed = write_viewed(tmp_path / "results" / "small")
    make_hostile(viewed)
    server = start(viewed, tmp_path / "cache")
    try:
        study = wait_for_index(server)
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        page.wait_for_selector("table")
        link = page.locator("tbody a").first
        link.focus()
        with viewed.writer("random", 1, "steps") as writer:
            writer.append([step_row(4, 0.5)])
        expect(page.locator("tbody tr").nth(2)).to_contain_text("4/5", timeout=20_000)
        expect(link).to_be_focused()  # the table was drawn again
        page.goto(f"{server.base}/study/{study}/curves")
        page.wait_for_selector("canvas")
        with viewed.writer("random", 2, "steps") as writer:
            writer.append([step_row(4, 1.0)])
        told = re.compile("random 0.750 at step 4$")
        expect(page.locator(".plot").first).to_have_attribute("aria-label", told, timeout=20_000)
        page.goto(f"{server.base}/study/{study}/steps?run=arms/random/seed-2")
        page.wait_for_selector(".card")
        with viewed.writer("random", 2) as rollouts:
            rollouts.append(batch(viewed, "random", 3))
        wait_for_rows(server, study, 112)
        page.click("#last-step")
        expect(page.locator("#step")).to_have_value("3")
        context.close()
    finally:
        server.stop()
