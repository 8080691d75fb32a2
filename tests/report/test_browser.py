from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
)  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")


def dom(address: str, profile: Path) -> tuple[str, str]:
    """Return the page as Chromium holds it after its script ran, and Chromium's own messages."""
    done = subprocess.run(
        [CHROMIUM or "chromium", *QUIET, f"--user-data-dir={profile}", address],
        capture_output=True,
        timeout=180,
        check=True,
    )
    return done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="session")
def address(page: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


def test_a_gained_count_leads_to_its_answers_in_chromium(address: str, tmp_path: Path) -> None:
    html, messages = dom(
        f"{address}#changed?arm=correctness&seed=0&metric=strict&change=gained", tmp_path
    )
    assert "CONSOLE" not in messages  # the policy refused nothing, the script raised nothing
    assert ">1 to 25 of 96 shown</output>" in html
    shown = re.findall(
        r'<li class="card" data-arm="([^"]*)" data-seed="([^"]*)" data-keys="([^"]*)">', html
    )
    assert len(shown) == 25
    assert all((arm, seed) == ("correctness", "0") for arm, seed, _ in shown)
    assert all("strict-gained" in keys.split() for _, _, keys in shown)


def test_hostile_text_runs_nothing_in_chromium(address: str, tmp_path: Path) -> None:
    html, messages = dom(f"{address}#changed?text=%3C/script%3E%3Cimg", tmp_path)
    assert "CONSOLE" not in messages
    assert "<img" not in html
    assert len(re.findall(r"<script", html)) == 2
    assert re.search(r">1 to \d+ of \d+ shown</output>", html)
