"""A small sound study, built once in a process; an input lies in a copy as its page or its card."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from ahalab.pipeline.cards import make_card
from ahalab.plan.load import load_plan
from ahalab.records.manifest import Claims
from ahalab.store.layout import StudyPaths
from ahalab.verify.cardfile import check_cards
from ahalab.verify.checks import Ledger
from ahalab.verify.reading import Study
from ahalab.verify.reportfile import check_report

PLAN = """
name: small
model: {id: organism}
task: {name: arithmetic, train_prompts: 4, eval_prompts: 4}
arms: [additive_format, random]
control: random
seeds: [1]
grpo: {max_steps: 2, num_generations: 4, per_device_train_batch_size: 8, max_completion_length: 48}
lora: {r: 2, lora_alpha: 4, target_modules: [q_proj]}
evaluation: {max_new_tokens: 48, batch_size: 4, floor_batch_size: 3}
"""
ARM, SEED = "additive_format", 1
CARD = f"arms/{ARM}/seed-{SEED}/adapter/README.md"
ENTRY = f"arms/{ARM}/seed-{SEED}/adapter/.eval_results/task.yaml"
# What a page holds for the eye alone, and is long.
_LOOKS = re.compile(r"<style.*?</style>|<svg.*?</svg>|<script>.*?</script>", re.DOTALL)


@cache
def sound() -> Path:
    """Return the study, with a card; nobody may write to it."""
    from study_builder import build  # what it imports is of no use to the other targets

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = build(folder / "study", PLAN)
    make_card(load_plan(root / "study.yaml"), StudyPaths(root), ARM, SEED, None)
    return root


def page() -> bytes:
    """Return the study's page without its looks."""
    return _LOOKS.sub("", (sound() / "report.html").read_text("utf-8")).encode()


def card() -> bytes:
    """Return the study's card."""
    return (sound() / CARD).read_bytes()


def check_page(payload: bytes, folder: Path) -> bool:
    """Check a page against the study; say whether it is found sound."""
    study = _copy(folder)
    study.paths.report.write_bytes(payload)
    check_report(study, study.record(study.paths.claims, Claims))
    return not study.ledger.failing()


def check_card(text: bytes, entry: bytes, folder: Path) -> bool:
    """Check a card, and an entry for a leaderboard; say whether they are found sound."""
    study = _copy(folder)
    (study.root / CARD).write_bytes(text)
    if entry:
        (study.root / ENTRY).parent.mkdir(exist_ok=True)
        (study.root / ENTRY).write_bytes(entry)
    check_cards(study)
    return not study.ledger.failing()


def _copy(folder: Path) -> Study:
    shutil.copytree(sound(), folder, dirs_exist_ok=True)
    return Study(folder, Ledger(lambda _: None))
