"""The picture of `ahalab power`: the same bytes each time, complete, and true to the table."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from ahalab.analyze.planning import Given, Wanted, plan_power
from ahalab.records.power import PowerTable
from ahalab.report.power_picture import draw_power, power_figure

SVG = "{http://www.w3.org/2000/svg}"


def table(seed_sd: float | None = 0.01, seeds: tuple[int, ...] = (1, 2, 3, 5)) -> PowerTable:
    wanted = Wanted(0.04, 0.8, 0.05, (200, 1319), seeds, (1,))
    return plan_power(wanted, Given(discordance=0.1, seed_sd=seed_sd), None, "given")


def texts(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - written by us
    return [" ".join("".join(node.itertext()).split()) for node in root.iter(f"{SVG}text")]


def test_the_same_table_gives_the_same_bytes() -> None:
    assert draw_power(table()) == draw_power(table())


def test_every_line_is_named_and_one_seed_has_none() -> None:
    told = texts(draw_power(table()))
    assert {"this adapter", "the reward, 2 seeds", "the reward, 3 seeds", "the reward, 5 seeds",
            "200 questions", "1,319 questions"} <= set(told)  # fmt: skip
    assert not any("1 seeds" in text for text in told)
    assert any("change of +4.0 points" in text for text in told)


def test_without_a_spread_over_seeds_it_says_so_instead_of_drawing() -> None:
    told = " ".join(texts(draw_power(table(seed_sd=None))))
    assert "no claim on a reward can be planned" in told
    assert "the reward, " not in told


def test_the_lines_go_through_the_figures_of_the_table() -> None:
    found = table(seeds=(5,))
    left, right = power_figure(found).axes
    lines = {line.get_label(): np.array(line.get_data()) for line in (*left.lines, *right.lines)}
    for design in found.designs:
        reward = design.claim == "reward"
        questions, chances = lines["the reward, 5 seeds" if reward else "this adapter"]
        drawn = np.interp(np.log(design.questions), np.log(questions), chances)
        assert drawn == pytest.approx(100 * design.power, abs=1.5)
        if reward:
            seeds, effects = lines[f"{design.questions:,} questions"]
            assert effects[list(seeds).index(5)] == pytest.approx(design.detectable_points)


@pytest.mark.parametrize("effect", [-0.04, 0.04])
def test_a_loss_is_drawn_as_a_gain_is(effect: float) -> None:
    wanted = Wanted(effect, 0.8, 0.05, (500,), (3,), (1,))
    made = plan_power(wanted, Given(discordance=0.1, seed_sd=0.01), None, "given")
    assert draw_power(made).startswith(b"<?xml")
