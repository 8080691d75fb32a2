"""Training as small multiples on one step axis: a thin line per seed, a thick mean per arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ahalab.records.step import Step
from ahalab.report.figure import Canvas, Figured
from ahalab.report.palette import ArmStyle
from ahalab.report.sources import RunSource, Study
from ahalab.report.svg import CHARACTER, MAX_POINTS, Frame, Scale, polyline, ticks
from ahalab.report.tables import Cell, Table, once
from ahalab.report.wording import number, percent, tick_label
from ahalab.visible import plain

WIDTH, HEIGHT = 350, 196
HEAD, FOOT, RIGHT = 10, 36, 12
TABLE_STEPS = 8  # steps listed behind each panel
Series = dict[int, float]  # step -> value
Reading = Callable[[Step], float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of training."""

    key: str
    title: str
    place: str  # where it stands in a row of steps.jsonl, as a JSON pointer without its first slash
    read: Reading
    share: bool = False  # a fraction, shown as a percentage

    def show(self, value: float | None) -> str:
        """Return a value as tables print it."""
        return percent(value) if self.share else number(value)


def figure_panel(name: str, title: str, *, share: bool = False) -> Panel:
    """Return the panel of one field of a step."""

    def read(step: Step) -> float | None:
        value: float | None = getattr(step, name)
        return value

    return Panel(name.replace("_", "-"), title, name, read, share)


REWARD = figure_panel("reward_mean", "Reward, as the trainer used it")
TRAINING = (
    figure_panel("zero_variance_fraction", "Groups with equal rewards: nothing to learn from",
                 share=True),
    figure_panel("entropy", "Entropy, nats per token"),
    figure_panel("length_mean_tokens", "Completion length, tokens"),
    figure_panel("unique_completions", "Different completions per group"),
    figure_panel("grad_norm", "Gradient norm"),
    figure_panel("kl", "KL divergence from the base, nats per token"),
    figure_panel("loss", "Loss"),
)  # fmt: skip
SCORERS = (
    figure_panel("scorer_disagreement_fraction", "The two disagree, strict reading", share=True),
    figure_panel("paid_though_wrong_fraction", "Right for the parser alone, lenient reading",
                 share=True),
    figure_panel("unpaid_though_right_fraction", "Right for the scorer alone, lenient reading",
                 share=True),
)  # fmt: skip
REFLECTION = (figure_panel("reflection_fraction", "Rollouts with a marker", share=True),)


def training_curves(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return a panel for the reward, for each component, and for what else training recorded."""
    names = sorted({name for run in study.runs for step in run.steps for name in step.components})
    components = (
        Panel(f"component-{at}", f"Component: {plain(name)}", f"components/{_escaped(name)}",
              _component(name))
        for at, name in enumerate(names)
    )  # fmt: skip
    return draw_panels(study, styles, (REWARD, *components, *TRAINING))


def draw_panels(
    study: Study, styles: dict[str, ArmStyle], panels: Iterable[Panel]
) -> tuple[Figured, ...]:
    """Return the panels that any run has values for, all arms in each."""
    drawn = []
    for panel in panels:
        series = [(run, series_of(run, panel.read)) for run in study.runs]
        series = [(run, values) for run, values in series if values]
        if series:
            drawn.append(_draw(panel, series, styles, last_step(study)))
    return tuple(drawn)


def thinning(study: Study) -> int:
    """Return k where every k-th step is drawn; 1: all of them."""
    longest = max((len(run.steps) for run in study.runs), default=0)
    return max(1, -(-longest // MAX_POINTS))


def last_step(study: Study) -> int:
    """Return the last step of any run: where the one step axis ends."""
    return max((step.step for run in study.runs for step in run.steps), default=1)


def step_ticks(last: int) -> tuple[float, ...]:
    """Return where the step axis is labelled."""
    return tuple(t for t in ticks(0, max(last, 1), 5) if t <= last and float(t).is_integer())


def _component(name: str) -> Reading:
    return lambda step: step.components.get(name)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def series_of(run: RunSource, read: Reading) -> Series:
    """Return a quantity of a run by step, where it is known."""
    values = ((step.step, read(step)) for step in run.steps)
    return {step: value for step, value in values if value is not None}


def mean_series(series: Sequence[Series]) -> Series:
    """Return the mean over seeds, at the steps that every seed has."""
    steps = sorted(set(series[0]).intersection(*series[1:])) if series else []
    return {step: sum(values[step] for values in series) / len(series) for step in steps}


def value_ticks(values: Iterable[float], *, share: bool, wanted: int = 4) -> tuple[float, ...]:
    """Return the ticks of a value axis; a share starts at 0 and ends at 1 at the latest."""
    found = list(values)
    if not share:
        return ticks(min(found), max(found), wanted)
    return tuple(t for t in ticks(0.0, max(*found, 0.01), wanted) if t <= 1.0)


def make_frame(
    marks: tuple[float, ...], label: Callable[[float], str], last: int, box: tuple[float, float]
) -> Frame:
    """Return a frame between two heights, its left margin as wide as its labels need."""
    left = 12 + CHARACTER * max(len(label(mark)) for mark in marks)
    top, bottom = box
    return Frame(
        Scale(0, max(last, 1), left, WIDTH - RIGHT), Scale(marks[0], marks[-1], bottom, top), marks
    )


def _draw(
    panel: Panel, series: list[tuple[RunSource, Series]], styles: dict[str, ArmStyle], last: int
) -> Figured:
    arms = list(dict.fromkeys(run.arm for run, _ in series))
    means = {arm: mean_series([values for run, values in series if run.arm == arm]) for arm in arms}
    marks = value_ticks((v for _, values in series for v in values.values()), share=panel.share)
    label = tick_label(marks, share=panel.share)
    frame = make_frame(marks, label, last, (HEAD, HEIGHT - FOOT))
    parts = [frame.draw(label, steps=step_ticks(last), named=True)]
    for run, values in series:
        parts.append(thin_line(frame, values, styles[run.arm].colour))
    for arm, values in means.items():
        parts.append(thick_line(frame, values, styles[arm]))
    canvas = Canvas(f"curve-{panel.key}", panel.title, describe(means), WIDTH, HEIGHT)
    return Figured(canvas.close(*parts), panel.title, step_table(panel.title, (panel,), series))


def thin_line(frame: Frame, values: Series, colour: str) -> Markup:
    """Return one seed's line."""
    return polyline(frame.points(values), stroke=colour, stroke_width="0.9", stroke_opacity="0.45")


def thick_line(frame: Frame, values: Series, style: ArmStyle) -> Markup:
    """Return an arm's mean with its markers; nothing where no step is shared."""
    if not values:
        return Markup("")
    points = frame.points(values)
    parts = [
        polyline(points, stroke=style.colour, stroke_width="2.2", stroke_dasharray=style.dashes)
    ]
    parts += [style.mark(*point) for point in points[:: max(1, -(-len(points) // 5))]]
    return Markup("").join(parts)


def describe(means: dict[str, Series]) -> str:
    """Return in words where each mean went; the numbers stand in the table."""
    parts = []
    for arm, values in means.items():
        if values:
            first, last = values[min(values)], values[max(values)]
            way = "higher" if last > first else "lower" if last < first else "as high"
            parts.append(
                f"{arm}: at the end {way} {'than' if last != first else 'as'} at the start"
            )
    return f"Mean over seeds. {'; '.join(parts)}."


def step_table(
    caption: str, panels: Sequence[Panel], series: list[tuple[RunSource, Series]]
) -> Table:
    """Return the recorded values of every run at a few steps; one row per run and panel."""
    steps = sorted({step for _, values in series for step in values})
    places = {round(i * (len(steps) - 1) / (TABLE_STEPS - 1)) for i in range(TABLE_STEPS)}
    listed = [steps[place] for place in sorted(places)]
    several = len(panels) > 1
    rows, files = [], []
    for run, _ in series:
        recorded = {step.step: step for step in run.steps}
        for panel in panels:
            cells = (
                Cell(panel.show(panel.read(recorded[step])), field=f"{step}/{panel.place}")
                if step in recorded
                else Cell(panel.show(None))
                for step in listed
            )
            named = (Cell(panel.title),) if several else ()
            rows.append((Cell(run.arm), Cell(str(run.seed)), *named, *cells))
            files.append(f"arms/{run.arm}/seed-{run.seed}/steps.jsonl")
    return Table(
        f"{caption}, at {len(listed)} of {len(steps)} steps; steps.jsonl has all.",
        ("arm", "seed", *(("quantity",) if several else ()), *(f"step {step}" for step in listed)),
        once(tuple(rows)),
        heads=3 if several else 2,
        numbers=3 if several else 2,
        files=tuple(files),
    )
