"""One arm per figure: reward above accuracy, groups as areas, lengths above what was cut."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import UNSET

from ahalab.records.diagnostics import ValidationPoint
from ahalab.report.curves import (
    REWARD,
    WIDTH,
    Panel,
    Series,
    describe,
    figure_panel,
    last_step,
    mean_series,
    series_of,
    step_table,
    step_ticks,
    thick_line,
    thin_line,
    value_ticks,
)
from ahalab.report.figure import Canvas, Figured
from ahalab.report.palette import SHAPES, ArmStyle
from ahalab.report.sources import RunSource, Study
from ahalab.report.svg import (
    MUTED,
    Frame,
    Scale,
    area,
    element,
    hatched,
    line,
    polyline,
    spread,
    text,
)
from ahalab.report.tables import Cell, Table
from ahalab.report.wording import percent, tick_label

NAMES = 66  # SVG units right of the panels, for the names of their lines
TITLE = 20  # above each panel
UPPER, LOWER, FOOT = 92, 116, 36  # heights
LEFT = 48
STRICT = figure_panel("strict_fraction", "strict", share=True)
LENIENT = figure_panel("lenient_fraction", "lenient", share=True)
GROUPS = (  # from the bottom
    figure_panel("all_wrong_fraction", "all wrong", share=True),
    figure_panel("mixed_fraction", "mixed", share=True),
    figure_panel("all_right_fraction", "all right", share=True),
)
LENGTHS = (
    figure_panel("length_right_tokens", "right"),
    figure_panel("length_wrong_tokens", "wrong"),
)
TRUNCATED = figure_panel("truncated_fraction", "truncated", share=True)
Share = tuple[str, Series]


TWO = ((None, "o"), ("6 3", "s"))  # dash and marker of two lines in one panel


def reward_panels(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return per arm its reward, and beneath it accuracy: validation's where the plan asked."""
    rewards = {arm: _runs(study, arm, REWARD) for arm in styles}
    found = [v for runs in rewards.values() for _, s in runs for v in s.values()]
    if not found:
        return ()
    marks, last = value_ticks(found, share=False, wanted=3), last_step(study)
    return tuple(
        _reward(study, styles[arm], runs, marks, last) for arm, runs in rewards.items() if runs
    )


def validated(study: Study) -> bool:
    """Say whether there is accuracy on a validation split."""
    return any(_points(run) for run in study.runs)


def _reward(
    study: Study,
    style: ArmStyle,
    runs: list[tuple[RunSource, Series]],
    marks: tuple[float, ...],
    last: int,
) -> Figured:
    on = "validation questions" if validated(study) else "training rollouts"
    upper = _frame(marks, last, TITLE, UPPER)
    shares = tuple(n / 4 for n in range(5))
    lower = _frame(shares, last, upper.y.start + 14 + TITLE, LOWER)
    mean = mean_series([series for _, series in runs])
    parts = [
        _heading("Reward", upper),
        upper.draw(tick_label(marks), steps=step_ticks(last), named=False),
        *(thin_line(upper, series, style.colour) for _, series in runs),
        thick_line(upper, mean, style),
        _heading(f"Right, of the {on}", lower),
        lower.draw(tick_label(shares, share=True), steps=step_ticks(last), named=True),
    ]
    accuracies = _accuracies(study, style.name)
    parts.append(_two_lines(lower, accuracies, style.colour))
    title = f"{style.label}: reward, and what was right"
    canvas = Canvas(
        f"reward-{_place(study, style)}", title,
        f"Reward. {describe({style.name: mean})} Right, by the evaluation scorer. "
        + describe({name: mean_series(seeds) for name, seeds in accuracies}),
        WIDTH, lower.y.start + FOOT,
    )  # fmt: skip
    if validated(study):
        table = _validation_table(title, [run for run, _ in runs])
    else:
        table = step_table(title, (REWARD, STRICT, LENIENT), runs)
    return Figured(canvas.close(*parts), style.label, table)


def _accuracies(study: Study, arm: str) -> list[tuple[str, list[Series]]]:
    runs = [run for run in study.runs if run.arm == arm]
    if not validated(study):
        return [
            (panel.title, [s for run in runs if (s := series_of(run, panel.read))])
            for panel in (STRICT, LENIENT)
        ]
    return [
        ("strict", [{p.step: p.strict_fraction for p in _points(run)} for run in runs]),
        ("lenient", [{p.step: p.lenient_fraction for p in _points(run)} for run in runs]),
    ]


def _points(run: RunSource) -> tuple[ValidationPoint, ...]:
    found = UNSET if run.diagnostics is None else run.diagnostics.validation
    return () if found is UNSET else found


def _validation_table(caption: str, runs: Sequence[RunSource]) -> Table:
    steps = sorted({point.step for run in runs for point in _points(run)})
    rows, files = [], []
    for run in runs:
        at = {point.step: (place, point) for place, point in enumerate(_points(run))}
        for name in ("strict_fraction", "lenient_fraction"):
            cells = (
                Cell(percent(getattr(at[s][1], name)), field=f"validation/{at[s][0]}/{name}")
                if s in at
                else Cell(percent(None))
                for s in steps
            )
            reading = name.partition("_")[0]
            rows.append((Cell(run.arm), Cell(str(run.seed)), Cell(reading), *cells))
            files.append(f"arms/{run.arm}/seed-{run.seed}/diagnostics.json")
    return Table(
        f"{caption}: validation at every checkpoint.",
        ("arm", "seed", "reading", *(f"step {step}" for step in steps)),
        tuple(rows), heads=3, numbers=3, files=tuple(files),
    )  # fmt: skip


def group_panels(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return per arm the shares of groups all wrong, mixed and all right, as stacked areas."""
    last = last_step(study)
    figures = []
    for style in styles.values():
        runs = _runs(study, style.name, GROUPS[0])
        shares = [
            (p.title, mean_series([s for _, s in _runs(study, style.name, p)])) for p in GROUPS
        ]
        steps = sorted(set.intersection(*(set(values) for _, values in shares)))
        if not steps:
            continue
        marks = tuple(n / 4 for n in range(5))
        frame = _frame(marks, last, 10, LOWER)
        key = f"groups-{_place(study, style)}"
        canvas = Canvas(
            key, f"{style.label}: groups by how many of their answers are right",
            describe(dict(shares)), WIDTH, frame.y.start + FOOT,
        )  # fmt: skip
        drawn = canvas.close(
            frame.draw(tick_label(marks, share=True), steps=step_ticks(last), named=True),
            _areas(frame, shares, steps, f"{key}-hatch"),
        )
        figures.append(Figured(drawn, style.label, step_table(canvas.title, GROUPS, runs)))
    return tuple(figures)


def _areas(frame: Frame, shares: list[Share], steps: list[int], key: str) -> Markup:
    looks = ((None, "var(--loss)"), ("var(--band)", MUTED), ("var(--gain)", None))
    floor = dict.fromkeys(steps, 0.0)
    parts, places = [], []
    for (_, values), (fill, edge) in zip(shares, looks, strict=True):
        top = {step: floor[step] + values[step] for step in steps}
        upper, lower = frame.points(top), frame.points(floor)
        if fill is None:
            parts.append(hatched(key, upper, lower, "var(--loss)"))
        else:
            parts.append(area(upper, lower, fill=fill))
        if edge is not None:  # the uppermost ends at 100 %
            parts.append(polyline(upper, stroke=edge, stroke_width="1.2"))
        places.append((upper[-1][1] + lower[-1][1]) / 2)
        floor = top
    parts.append(_line_names(frame, [name for name, _ in shares], places))
    return Markup("").join(parts)


def length_panels(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return per arm the mean length of right and of wrong rollouts, and the share truncated."""
    limit, last = study.plan.grpo.get("max_completion_length"), last_step(study)
    cut = float(limit) if isinstance(limit, int) else None
    means = {
        arm: [(p.title, [s for _, s in _runs(study, arm, p)]) for p in LENGTHS] for arm in styles
    }
    lengths = [
        v for lines in means.values() for _, seeds in lines for s in seeds for v in s.values()
    ]
    truncated = {arm: _runs(study, arm, TRUNCATED) for arm in styles}
    shares = [v for runs in truncated.values() for _, s in runs for v in s.values()]
    if not lengths or not shares:
        return ()
    upper = _frame(value_ticks([0.0, *lengths, cut or 0.0], share=False), last, TITLE, LOWER)
    lower_marks = value_ticks(shares, share=True, wanted=2)
    lower = _frame(lower_marks, last, upper.y.start + 14 + TITLE, 44)
    figures = []
    for style in styles.values():
        runs = truncated[style.name]
        if not runs:
            continue
        key = f"lengths-{_place(study, style)}"
        canvas = Canvas(
            key, f"{style.label}: length of right and of wrong rollouts, and the share truncated",
            describe({n: mean_series(seeds) for n, seeds in means[style.name] if seeds}),
            WIDTH, lower.y.start + FOOT,
        )  # fmt: skip
        drawn = canvas.close(
            _heading("Mean length, tokens", upper),
            upper.draw(tick_label(upper.y_ticks), steps=step_ticks(last), named=False),
            _limit(upper, cut),
            _two_lines(upper, means[style.name], style.colour),
            _heading("Truncated", lower),
            _hatched(lower, mean_series([s for _, s in runs]), f"{key}-hatch"),
            lower.draw(tick_label(lower_marks, share=True), steps=step_ticks(last), named=True),
        )
        table = step_table(canvas.title, (*LENGTHS, TRUNCATED), runs)
        figures.append(Figured(drawn, style.label, table))
    return tuple(figures)


def _limit(frame: Frame, cut: float | None) -> Markup:
    """Return the line at which a completion is cut."""
    if cut is None:
        return Markup("")
    at = frame.y(cut)
    return line((frame.x.start, at), (frame.x.end, at), MUTED, stroke_dasharray="2 3") + text(
        (frame.x.end + 6, at), "limit", fill=MUTED
    )


def _hatched(frame: Frame, values: Series, key: str) -> Markup:
    if not values:
        return Markup("")
    points = frame.points(values)
    floor = [(x, frame.y.start) for x, _ in points]
    return hatched(key, points, floor, "var(--loss)") + polyline(
        points, stroke="var(--loss)", stroke_width="1.4"
    )


def _two_lines(frame: Frame, lines: list[tuple[str, list[Series]]], colour: str) -> Markup:
    """Return two quantities, each a thin line per seed and a thick mean with its name."""
    parts, places, named = [], [], []
    for (name, seeds), (dashes, marker) in zip(lines, TWO, strict=True):
        mean = mean_series([s for s in seeds if s])
        parts += [thin_line(frame, seed, colour) for seed in seeds if seed]
        if not mean:
            continue
        points = frame.points(mean)
        parts.append(polyline(points, stroke=colour, stroke_width="2.2", stroke_dasharray=dashes))
        parts += [
            element("path", d=SHAPES[marker], fill=colour,
                    transform=f"translate({x:.1f} {y:.1f})")
            for x, y in points[:: max(1, -(-len(points) // 5))]
        ]  # fmt: skip
        places.append(points[-1][1])
        named.append(name)
    return Markup("").join([*parts, _line_names(frame, named, places)])


def _line_names(frame: Frame, names: list[str], places: list[float]) -> Markup:
    """Return the names of lines at their ends, moved apart where they would touch."""
    moved = spread(places, 14, frame.y.end + 4, frame.y.start - 4)
    at = frame.x.end + 6
    return Markup("").join(
        text((at, place), name) for name, place in zip(names, moved, strict=True)
    )


def _frame(marks: tuple[float, ...], last: int, top: float, height: float) -> Frame:
    x = Scale(0, max(last, 1), LEFT, WIDTH - NAMES)
    return Frame(x, Scale(marks[0], marks[-1], top + height, top), marks)


def _heading(words: str, frame: Frame) -> Markup:
    return text((0, frame.y.end - TITLE + 6), words, fill=MUTED)


def _runs(study: Study, arm: str, panel: Panel) -> list[tuple[RunSource, Series]]:
    runs = ((run, series_of(run, panel.read)) for run in study.runs if run.arm == arm)
    return [(run, series) for run, series in runs if series]


def _place(study: Study, style: ArmStyle) -> int:
    """Return the arm's number: a name of any letters is no id."""
    return [arm.name for arm in study.plan.arms].index(style.name)
