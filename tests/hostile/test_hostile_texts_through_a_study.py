"""Questions and completions that try a terminal, a page, a table and a scorer: a study of them.

Every command that reads a study meets them as a real process. None may send a byte that a terminal
obeys, make a formula or an element of them, or hold the evidence for unsound.
"""

from __future__ import annotations

import csv
import itertools
import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Said, run

import study_builder

MEGABYTE = "<answer>" * 125_000
CELL = "arms/correctness/seed-1"
END, TOKENIZER = study_builder.END, study_builder.TOKENIZER
# What comes before a right or a wrong answer; formulas also where a text begins.
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 \x1b]0;title\x1b\\",
    "\x9b31m \x90q\x9c \x85 \x7f",
    "\u202eevil\u202c \u2066\u2069 \u200b \ufeff \u200f",
    "line\u2028line\u2029line\x0bline\x0cline\r=cmd|' /C calc'!A0",
    "\x00\x01\x08\x1f",
    "</script><img src=x onerror=alert(1)><!-- <script>",
    "<a href='javascript:alert(1)'>x</a> [x](javascript:alert(1)) ![x](http://evil.example/x)",
    "[/answer] [bold]x[/bold] [link=http://evil.example]x[/link] [/]",
    "<answer>" * 1_000,
    "(" * 3_000 + "7" + ")" * 3_000 + r" \boxed{" * 300,
    "=cmd|' /C calc'!A0",
    "+HYPERLINK(\"http://evil.example\")",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\0 \ufeff=1+1",
    "＝1+1",
    "__import__('os').abort() {{ 7 * 7 }} %s %(x)s ${x} {0}",
    "```\n---\nlicense: evil\n---\n# Heading\n| a | b |",
    r"\boxed{10^{10^8}} <answer>99**98**4</answer> <answer>7//2</answer>",
    "\U000e0041\U0010ffff\ufffe e\u0301\u0301\u0301\u0301",
)  # fmt: skip
PLAN = """
name: hostile
model: {{id: organism}}
task: {{name: jsonl, path: '{}', train_prompts: 8, eval_prompts: 20, scoring: gsm8k}}
arms: [correctness, random]
control: random
seeds: [1, 2]
grpo: {{max_steps: 4, num_generations: 4, per_device_train_batch_size: 8, save_steps: 2,
  max_completion_length: 1000000}}
lora: {{r: 2, lora_alpha: 4, target_modules: [q_proj]}}
evaluation: {{max_new_tokens: 1000000, batch_size: 8, floor_batch_size: 6}}
"""


def write_questions(folder: Path) -> None:
    folder.mkdir()
    for name, count, first in (("train", 8, 100), ("eval", 20, 0)):
        rows = []
        for number in range(count):
            text = HOSTILE[number % len(HOSTILE)][:400]
            question = f"{text} number {first + number} of {name}?"
            rows.append(json.dumps({"question": question, "answer": str(number)}) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(rows), "ascii")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("hostile")
    write_questions(folder / "task")
    texts = itertools.cycle([*HOSTILE * 5, MEGABYTE])

    def write(rng: random.Random, gold: str, skill: float) -> study_builder.Written:
        value = gold if rng.random() < skill else str(int(gold) + 1)
        text = f"{next(texts)}\n#### {value}"
        return study_builder.Written(text, (*TOKENIZER.encode(text).ids, END), "eos")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_builder, "write", write)
        patched.setattr(study_builder, "LIMIT", 1_000_000)
        yield study_builder.build(folder / "results" / "hostile", PLAN.format(folder / "task"))


def obeyed(text: str) -> set[str]:
    """Return what a terminal would obey, hide or reorder by."""
    odd = {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}}
    return odd - {"\n"}


def shown(said: Said, code: int = 0) -> str:
    assert said.code == code, said.err
    assert obeyed(said.out + said.err) == set()
    assert "Traceback" not in said.err
    return said.out


def test_the_evidence_of_hostile_texts_is_sound(study: Path) -> None:
    assert "\nPASSED: " in shown(run("verify", study))


@pytest.mark.parametrize(
    "command",
    [
        ("analyze",),
        ("ablate",),
        ("reflect",),
        ("demo", "--plain", "--cell", CELL, "--run"),
        ("demo", "--type", "--cell", CELL, "--run"),
    ],
    ids=" ".join,
)
def test_nothing_that_a_terminal_obeys_is_printed(study: Path, command: tuple[str, ...]) -> None:
    out = shown(run(*command, study, stdin="\x1b[31m7\x07\n#### 7\n\n"))
    if command[:2] == ("demo", "--plain"):
        for told in ("^[[31mred", "\\x9b31m", "\\u202eevil", "[/answer]", "^@^A", "</script>"):
            assert told in out


@pytest.mark.parametrize("command", ["diagnose", "counterfactual"])
def test_nothing_that_a_terminal_obeys_is_printed_of_a_run(study: Path, command: str) -> None:
    shown(run(command, study / CELL))


def test_no_cell_of_the_changed_responses_is_a_formula(study: Path, tmp_path: Path) -> None:
    shown(run("analyze", study, "--csv", tmp_path / "changed.csv"))
    csv.field_size_limit(1 << 24)
    with (tmp_path / "changed.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    assert len(rows) > 10
    assert len({len(row) for row in rows}) == 1
    cells = [cell for row in rows for cell in row]
    begins = tuple("=+-@\t\r\n＝")
    assert not [cell[:40] for cell in cells if cell.strip(" \0\ufeff").startswith(begins)]
    assert [cell for cell in cells if cell.startswith("'=cmd")]


def test_the_report_and_the_card_hold_texts_and_no_elements(study: Path, tmp_path: Path) -> None:
    page = (study / "report.html").read_text("utf-8")
    assert page.count("</script") == page.count("<script")
    card = ("card", study, "--arm", "correctness", "--seed", "1", "--to", tmp_path / "card")
    shown(run(*card))
    for text in (page, (tmp_path / "card" / "README.md").read_text("utf-8")):
        assert obeyed(text) <= {"\t"}
        assert "<img src=x" not in text


def test_reporting_again_leaves_the_same_evidence(study: Path) -> None:
    manifest, page = (study / "manifest.json").read_bytes(), (study / "report.html").read_bytes()
    shown(run("report", study))
    assert (study / "manifest.json").read_bytes() == manifest
    assert (study / "report.html").read_bytes() == page


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Foreign logs with such texts as responses, golds and ids; halves of characters too."""
    folder = tmp_path_factory.mktemp("scored")
    for name, shift in (("a", 0), ("b", 1)):
        rows = []
        for number, text in enumerate((*HOSTILE, MEGABYTE, "half \ud800 of a character")):
            response = f"{text}\n#### {number + (number + shift) % 2}"
            row = {"id": f"{text[:200]} {number}", "response": response, "gold": str(number)}
            rows.append(json.dumps(row) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(rows), "ascii")
    return folder


def test_scores_and_comparisons_of_such_logs_are_shown_in_plain_letters(scored: Path) -> None:
    shown(run("score", scored / "a.jsonl"))
    for name in ("a", "b"):
        lines = shown(run("score", scored / f"{name}.jsonl", "--format", "json"))
        (scored / f"{name}.scores").write_text(lines, "ascii")
        found = [json.loads(line) for line in lines.splitlines()]
        assert len(found) == len(HOSTILE) + 2
        assert {row["strict"] for row in found} >= {"correct", "wrong"}
    shown(run("compare", scored / "a.scores", scored / "b.scores"))
    compared = json.loads(
        shown(run("compare", scored / "a.scores", scored / "b.scores", "--format", "json"))
    )
    assert compared["strict"]["n"] == len(HOSTILE) + 2
    doubled = (scored / "a.scores").read_text() * 2
    (scored / "twice.scores").write_text(doubled, "ascii")
    said = run("compare", scored / "a.scores", scored / "twice.scores")
    shown(said, code=2)
    assert len(said.line) < 2_100


def test_a_comparison_of_two_answer_files_of_the_study_is_shown_in_plain_letters(
    study: Path,
) -> None:
    shown(run("compare", study / "base" / "answers.jsonl", study / CELL / "answers.jsonl"))
