from pathlib import Path

from ahalab.records.document import document

PAGE = Path(__file__).parents[2] / "docs" / "artefacts.md"


def test_the_page_of_artefacts_says_what_the_records_say_now() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), (
        "stale: python -m ahalab.records.document docs/artefacts.md"
    )
