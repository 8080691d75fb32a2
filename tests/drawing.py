"""What draws a report, for a verification: as `ahalab verify` hands it over."""

from __future__ import annotations

from ahalab.report.html import build_report, drawing_digest
from ahalab.verify.report_drawn import Drawing

INSTALLED = Drawing(drawing_digest(), build_report)
