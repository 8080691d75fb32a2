"""Tampering after which the owner analyses, reports and seals with the tool's own means."""

from __future__ import annotations

from mutations.kinds import ANSWERS, ROLLOUTS, RUN, Mutation, copy_set, remove, row, swap_runs

REBUILT = [
    Mutation(
        "an outcome is raised, all rebuilt", row(ANSWERS, 4, strict="error"), "regrade", ANSWERS, 4
    ),
    Mutation(
        "an answer is edited, all rebuilt",
        row(ANSWERS, 4, completion="#### 1000000"),
        "extract",
        ANSWERS,
        4,
    ),
    Mutation(
        "a gold is edited, all rebuilt",
        row("prompts/eval.jsonl", 3, gold="1"),
        "dataset.hash",
        "prompts/eval.jsonl",
        3,
    ),
    Mutation(
        "a component is edited, all rebuilt",
        row(
            ROLLOUTS,
            1,
            components={"historical_correct": {"value": 0.5, "status": "ok"}},
            reward=0.5,
        ),
        "grade.status",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "an advantage is edited, all rebuilt",
        row(ROLLOUTS, 3, advantage=2.5),
        "advantage",
        ROLLOUTS,
        3,
    ),
    Mutation(
        "the labels of arms are exchanged, all rebuilt",
        swap_runs,
        "adapter.arm",
        f"{RUN}/run.json",
    ),
    Mutation(
        "the answers of a checkpoint are added, all rebuilt",
        lambda r: copy_set(r, f"{RUN}/checkpoint-2"),
        "arms.all",
        f"{RUN}/checkpoint-2/answers",
    ),
    Mutation("an arm is left out, all rebuilt", remove(RUN, f"replay/{RUN}"), "arms.all", ""),
]
