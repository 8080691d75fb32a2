import pytest

from ahalab.organism.reading import read_lenient, read_strict


@pytest.mark.parametrize(
    ("completion", "strict", "lenient"),
    [
        ("4 + 5 = 9\n#### 9", "9", "9"),
        ("4 + 5 = 9\n#### 9\n", "9", "9"),
        ("4 + 5 = 9\nThe answer is 9.", None, "9"),
        ("4 + 5 = 9\nAnswer: 9", None, "9"),
        ("4 + 5 = 9\nSo it is 9 in all.", None, "9"),
        ("4 + 5 = 9", None, None),
        ("#### 9\n4 + 5 = 9", None, "9"),
        ("#### 9.", None, "9"),
        ("", None, None),
    ],
)
def test_strict_reads_the_asked_format_and_lenient_any_statement(
    completion: str, strict: str | None, lenient: str | None
) -> None:
    assert read_strict(completion) == strict
    assert read_lenient(completion) == lenient
