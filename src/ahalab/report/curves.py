"""Training as small multiples on one step axis: a thin line per seed, a thick mean per arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ahalab.records.step import Step
from ahalab.report.drawing import drawing_style, new_figure, to_chart
from ahalab.report.forest import Figured
from ahalab.report.palette import ArmStyle
from ahalab.report.sources import RunSource, Study
from ahalab.report.tables import Cell, Table
from ahalab.report.wording import number, percent
from ahalab.visible import plain

WIDTH, HEIGHT = 350, 200
MAX_POINTS = 200  # drawn per line; longer runs are drawn every k-th step, and the page says so
TABLE_STEPS = 10  # steps listed behind each panel
Series = dict[int, float]  # step -> value
Reading = Callable[[Step], float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of training."""

    key: str
    title: str
    read: Reading
    share: bool  # a fraction, shown as a percentage from 0 to 100


FIXED = (
    Panel("strict", "Rollouts correct, strict", lambda s: s.strict_fraction, True),
    Panel("lenient", "Rollouts correct, lenient", lambda s: s.lenient_fraction, True),
    Panel("historical", "Rollouts correct, training parser", lambda s: s.historical_fraction, True),
    Panel("dead", "Groups dead (all rewards equal)", lambda s: s.zero_variance_fraction, True),
    Panel("entropy", "Entropy, nats per token", lambda s: s.entropy, False),
    Panel("length", "Completion length, tokens", lambda s: s.length_mean_tokens, False),
    Panel("truncated", "Completions truncated", lambda s: s.truncated_fraction, True),
)


def training_curves(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return a panel per quantity that any run recorded: reward, components, what they did."""
    names = sorted({name for run in study.runs for step in run.steps for name in step.components})
    panels = (
        Panel("reward", "Reward, as the trainer used it", lambda s: s.reward_mean, False),
        *(
            Panel(f"component-{at}", f"Component {plain(name)}", _component(name), False)
            for at, name in enumerate(names)
        ),
        *FIXED,
    )
    last = max((step.step for run in study.runs for step in run.steps), default=0)
    drawn = []
    for panel in panels:
        series = [(run, _series(run, panel.read)) for run in study.runs]
        series = [(run, values) for run, values in series if values]
        if series:
            drawn.append(_draw(panel, series, styles, last))
    return tuple(drawn)


def thinning(study: Study) -> int:
    """Return k where every k-th step is drawn; 1: all of them."""
    longest = max((len(run.steps) for run in study.runs), default=0)
    return max(1, -(-longest // MAX_POINTS))


def _component(name: str) -> Reading:
    return lambda step: step.components.get(name)


def _series(run: RunSource, read: Reading) -> Series:
    values = ((step.step, read(step)) for step in run.steps)
    return {step: value for step, value in values if value is not None}


def _mean(series: list[Series]) -> Series:
    """Return the mean over seeds, at the steps that every seed has."""
    steps = sorted(set(series[0]).intersection(*series[1:]))
    return {step: sum(values[step] for values in series) / len(series) for step in steps}


def _draw(
    panel: Panel, series: list[tuple[RunSource, Series]], styles: dict[str, ArmStyle], last: int
) -> Figured:
    arms = list(dict.fromkeys(run.arm for run, _ in series))
    means = {arm: _mean([values for run, values in series if run.arm == arm]) for arm in arms}
    with drawing_style():
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        _frame(axes, panel, last)
        for run, values in series:
            _line(axes, values, styles[run.arm], thick=False)
        for arm, values in means.items():
            _line(axes, values, styles[arm], thick=True)
        chart = to_chart(figure, f"curve-{panel.key}", panel.title, _describe(panel, means))
    return Figured(chart, panel.title, _table(panel, series))


def _frame(axes: Axes, panel: Panel, last: int) -> None:
    axes.set_xlim(0, max(last, 1))
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("step")
    axes.margins(y=0.08)
    if panel.share:
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{round(100 * value, 6):g} %")
        )


def _line(axes: Axes, values: Series, style: ArmStyle, *, thick: bool) -> None:
    if not values:
        return
    every = max(1, -(-len(values) // MAX_POINTS))
    steps = list(values)[::every]
    axes.plot(
        steps, [values[step] for step in steps], color=style.stand_in, linewidth=2.2 if thick else
        0.8, alpha=1.0 if thick else 0.4, zorder=3 if thick else 2, linestyle=(0,
        tuple(length / 1.6 for length in style.dash)) if thick and style.dash else "-",
        marker=style.marker if thick else None, markersize=5.5, markevery=max(1, len(steps) // 5),
    )  # fmt: skip


def _describe(panel: Panel, means: dict[str, Series]) -> str:
    show = percent if panel.share else number
    parts = []
    for arm, values in means.items():
        if values:
            first, last = min(values), max(values)
            parts.append(
                f"{arm}: {show(values[first])} at step {first}, {show(values[last])} at step {last}"
            )
    return "Mean over seeds. " + "; ".join(parts) + "."


def _table(panel: Panel, series: list[tuple[RunSource, Series]]) -> Table:
    """Return the recorded values of every run at a few steps."""
    steps = sorted({step for _, values in series for step in values})
    places = sorted({round(i * (len(steps) - 1) / (TABLE_STEPS - 1)) for i in range(TABLE_STEPS)})
    listed = [steps[place] for place in places]
    show = percent if panel.share else number
    return Table(
        f"{panel.title}, at {len(listed)} of {len(steps)} steps; steps.jsonl has all.",
        ("arm", "seed", *(f"step {step}" for step in listed)),
        tuple(
            (
                Cell(run.arm),
                Cell(str(run.seed)),
                *(Cell(show(values.get(step))) for step in listed),
            )
            for run, values in series
        ),
        heads=2,
        numbers=2,
    )
