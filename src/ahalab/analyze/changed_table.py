"""Changed responses as CSV, for a spreadsheet; the study's JSON holds the exact texts."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_file, to_plain
from ahalab.records.comparison import ChangedAnswer, ChangedResponses
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths

# A spreadsheet runs a cell that begins so as a formula, after blanks and unseen characters too, and
# a model may write anything. The wide signs count in East Asian settings.
FORMULA = re.compile(r"[\s\x00-\x1f\x7f\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")


def require_outside(file: Path, paths: StudyPaths) -> None:
    """Refuse a file within the study, whose contents are closed.

    Raises:
        InputError: It lies there.
    """
    if paths.root.resolve() in file.resolve().parents:
        raise InputError(
            f"{file}: expected a file outside the study {paths.root}, whose files are evidence. "
            "Name another folder."
        )


def write_changed_csv(file: Path, paths: StudyPaths) -> None:
    """Write the changed responses of an analyzed study as CSV.

    Raises:
        InputError: The file can't be written.
    """
    payload = read_plain(paths.changed)
    changed = decode_file(payload, ChangedResponses, str(paths.changed))
    replace_file(file, changed_csv(changed).encode())


def changed_csv(changed: ChangedResponses) -> str:
    """Return one line per changed answer under a header of field names.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    fields = ChangedAnswer.__struct_fields__
    # Python before 3.13 leaves a cell with a carriage return unquoted: what follows is a new row.
    table = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(fields)
    for entry in changed.changed:
        plain = to_plain(entry)
        table.writerow([_cell(plain[field]) for field in fields])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    shown = str(value)
    return f"'{shown}" if isinstance(value, str) and FORMULA.match(shown) else shown
