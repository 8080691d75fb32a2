from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_set import begin_again, validating, validation_of
from viewed_study import Viewed
from viewer_server import Running, start, wait_for_index
from watching import Watched, assert_accessible, current, watching

import chromium
from ahalab.plan.load import load_plan
from ahalab.statistics.validation import validation_points
from ahalab.store.layout import StudyPaths

playwright = chromium.playwright
expect = playwright.expect
VALIDATION = "arms/correctness/seed-1/validation"

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with chromium.launched() as browser:
        yield browser


@pytest.fixture
def watched(browser: playwright.Browser, served: Running) -> Iterator[Watched]:
    with watching(browser, served) as watched:
        yield watched


@pytest.fixture
def name(served: Running) -> str:
    """The id of the study."""
    return wait_for_index(served)


def test_the_runs_lead_to_their_validation_and_to_all_other_answers(
    watched: Watched, whole: Path
) -> None:
    page = watched.page
    last = validation_points(validation_of(StudyPaths(whole), "correctness", 1))[-1]
    link = page.locator("tbody tr").first.locator("a[href*=validation]")
    assert link.inner_text() == f"{100 * last.strict_fraction:.1f} %"
    more = page.locator("summary", has_text="more sets of answers")
    assert more.inner_text() == "24 more sets of answers: replays, templates, reflection"
    more.click()
    row = page.locator("details tr", has_text="template short")
    assert " ".join(row.inner_text().split()).startswith("template short 4 ")
    link.click()
    page.wait_for_selector(".card")
    assert page.locator("#pager").inner_text().startswith("5 answers")
    assert page.locator(".card h2").inner_text() == "correctness · 1, validation at step 4"


def test_validation_has_panels_of_its_own_beside_the_reward(
    watched: Watched, name: str, whole: Path
) -> None:
    page = watched.open(name, "curves", "canvas")
    assert page.locator("#charts h2").first.inner_text() == "Rewards and validation"
    titles = page.locator("figcaption").all_inner_texts()
    assert titles[:3] == [
        "Reward", "Validation accuracy, strict %", "Validation accuracy, lenient %",
    ]  # fmt: skip
    paths = StudyPaths(whole)
    means = {
        arm: sum(
            validation_points(validation_of(paths, arm, seed))[-1].lenient_fraction
            for seed in (1, 2)
        )
        / 2
        for arm in ("correctness", "mine", "random")
    }
    told = "; ".join(f"{arm} {100 * mean:.1f} % at step 4" for arm, mean in means.items())
    assert page.locator(".plot").nth(2).get_attribute("aria-label") == (
        f"Validation accuracy, lenient, mean of the seeds by step: {told}"
    )


def test_answers_are_browsed_and_filtered_and_the_address_holds_it(
    watched: Watched, name: str
) -> None:
    page = watched.open(name, "answers", ".card")
    page.select_option("#set", VALIDATION)
    expect(page.locator("#pager")).to_contain_text("10 answers")
    page.keyboard.press("/")
    page.keyboard.type("step=4")
    page.keyboard.press("Enter")
    expect(page.locator("#pager")).to_contain_text("5 answers")
    page.keyboard.press("Escape")
    page.select_option("#sort", "tokens")
    expect(page.locator("#list a").first).to_contain_text("48 tokens")
    page.keyboard.press("j")
    expect(page.locator("#list a").nth(1)).to_have_attribute("aria-current", "true")
    page.wait_for_url("**id=*")
    before = (page.url, current(page))
    page.reload()
    page.wait_for_selector("#list a[aria-current]")
    assert (page.url, current(page)) == before
    assert page.input_value("#filter") == "step=4"
    assert page.input_value("#set") == VALIDATION
    shown = page.locator(".card .text").inner_text()
    page.locator("#detail a", has_text="compare").click()
    page.wait_for_selector(".pair")
    assert page.locator(".pair .text").nth(1).inner_text() == shown
    assert page.locator(".pair h2").all_inner_texts() == [
        "correctness · 1, validation at step 2", "correctness · 1, validation at step 4",
    ]  # fmt: skip


def test_compare_picks_any_two_sets_over_the_same_questions(watched: Watched, name: str) -> None:
    page = watched.open(name, "compare?cell=floor", ".pair")
    expect(page.locator("#note")).to_contain_text("The noise floor: the base again")
    page.select_option("#cell", label="base, replayed")
    page.wait_for_url("**cell=replay%2Fbase*")
    expect(page.locator("#note")).to_contain_text("Generated again elsewhere")
    expect(page.locator("#against")).to_have_value("base")
    expect(page.locator("#detail")).to_contain_text("Both are the same to the byte")
    assert "same 16" in page.locator("#shows").inner_text()
    page.select_option("#cell", label="template short")
    expect(page.locator("#note")).to_contain_text("short asks 'Q: {question}'")
    page.select_option("#against", label="correctness · 1, validation at step 4")
    page.wait_for_url("**against=*validation*")
    expect(page.locator("#note")).to_contain_text("To read, not to count")
    offered = page.locator("#against option").all_inner_texts()
    assert "base, replayed" not in offered  # to other questions
    assert "template short" not in offered  # itself
    page.reload()
    page.wait_for_selector(".pair")
    assert page.locator(".pair h2").all_inner_texts() == [
        "correctness · 1, validation at step 4", "template short",
    ]  # fmt: skip
    page.keyboard.press("[")
    page.wait_for_url("**templates%2Fpolite*")
    expect(page.locator("#against")).to_have_value("templates/plan")


def test_an_answer_is_read_as_given_cut_and_finished_without_its_marker(
    watched: Watched, name: str
) -> None:
    page = watched.open(name, "compare?cell=reflection/arms/mine/seed-1/without", ".pair")
    assert page.locator(".pair h2").all_inner_texts() == [
        "mine · 1", "mine · 1, finished without its marker",
    ]  # fmt: skip
    given, finished = (page.locator(".pair .card").nth(n) for n in (0, 1))
    assert given.locator(".text .reflects").all_inner_texts() == ["Wait"]
    assert "cut before" in finished.locator(".took").inner_text()
    assert finished.locator(".took code", has_text="wait").count() == 1
    offered = page.locator("#against option").all_inner_texts()
    assert offered == ["mine · 1", "mine · 1, continued freely"]
    page.fill("#filter", "still=no")
    page.wait_for_url("**q=still*")
    expect(page.locator(".pair .text .reflects")).to_have_count(1)


def test_sets_that_cannot_be_compared_are_refused_in_words(watched: Watched, name: str) -> None:
    path = "compare?cell=replay/base&against=reflection/base/kept"
    page = watched.open(name, path, "#detail .empty")
    assert page.locator("#detail").inner_text() == (
        "reflection/base/kept: expected the answers that were cut, base, found replay/base. "
        "Such answers are not compared."
    )
    watched.faults.clear()  # Chromium notes the reply 409
    page.select_option("#against", label="base")
    page.wait_for_selector(".pair")


@pytest.mark.parametrize(
    ("path", "width", "scheme"),
    [("curves", 1280, "light"), ("answers?q=kind=validation", 400, "dark"),
     ("answers", 1280, "light"), ("compare?cell=templates/short", 400, "dark"),
     ("compare?cell=reflection/arms/mine/seed-1/without", 1280, "light"),
     ("compare?cell=reflection/arms/mine/seed-1/without", 400, "dark")],
)  # fmt: skip
def test_axe_finds_no_serious_fault_in_sets(
    browser: playwright.Browser, served: Running, name: str, path: str, width: int, scheme: str
) -> None:
    assert_accessible(browser, served, f"study/{name}/{path}", width, scheme)


def test_checkpoints_come_and_go_in_the_open_curves(
    browser: playwright.Browser, whole: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(whole, tmp_path / "results" / "rich")
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    points = {seed: validation_points(validation_of(paths, "correctness", seed)) for seed in (1, 2)}
    for arm in plan.arms[1:]:
        for seed in plan.seeds:
            begin_again(paths, arm.name, seed)
    later = {seed: begin_again(paths, "correctness", seed) for seed in (1, 2)}
    server = start(Viewed(plan, paths, []), tmp_path / "cache")
    try:
        study = wait_for_index(server)
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        page.wait_for_selector("table")
        page.goto(f"{server.base}/study/{study}/curves")
        page.wait_for_selector("canvas")
        strict = page.locator("figure", has_text="Validation accuracy, strict").locator(".plot")
        assert strict.count() == 0
        for at, step in enumerate((2, 4)):
            for seed in (1, 2):
                with validating(paths, "correctness", seed) as writer:
                    writer.append(later[seed][at])
            mean = 100 * sum(points[seed][at].strict_fraction for seed in (1, 2)) / 2
            told = re.compile(rf"correctness {mean:.1f} % at step {step}$")
            expect(strict).to_have_attribute("aria-label", told, timeout=20_000)
        for seed in (1, 2):
            with validating(paths, "correctness", seed) as writer:
                writer.cut(1)  # as a resume from the checkpoint at step 2
        told = re.compile("correctness .* % at step 2$")
        expect(strict).to_have_attribute("aria-label", told, timeout=20_000)
        context.close()
    finally:
        server.stop()
