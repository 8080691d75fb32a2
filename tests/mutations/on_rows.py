"""Tampering with rows, all digests mended: only what is recomputed tells."""

from __future__ import annotations

import json

from mutations.kinds import (
    ANSWERS,
    ANY_LINE,
    RANDOM,
    ROLLOUTS,
    RUN,
    STEPS,
    Mutation,
    no_longer_correct,
    raw,
    record,
    row,
    rows,
    turn_alarms,
)
from tampering import edit_row, read_lines

# Journals and manifest are mended afterwards: only what is recomputed tells.
ROWS = [
    Mutation("a row is doubled", rows(ROLLOUTS, lambda x: [*x, x[-1]]), "row.unique", ROLLOUTS, 33),
    Mutation(
        "a row is deleted, all digests mended", rows(ROLLOUTS, lambda x: x[:-1]), "cover", ROLLOUTS
    ),
    Mutation(
        "a row is deleted in the middle",
        rows(ROLLOUTS, lambda x: x[:4] + x[5:]),
        "cover",
        ROLLOUTS,
        5,
    ),
    Mutation(
        "an answer is doubled", rows(ANSWERS, lambda x: [*x, x[-1]]), "row.unique", ANSWERS, 25
    ),
    Mutation(
        "a question is dropped from the answers", rows(ANSWERS, lambda x: x[:-1]), "cover", ANSWERS
    ),
    Mutation(
        "a key stands twice in a row",
        raw(ROLLOUTS, 3, b'"sample":2', b'"sample":1,"sample":2'),
        "json.strict",
        ROLLOUTS,
        3,
    ),
    Mutation(
        "a reward is NaN",
        raw(ROLLOUTS, 2, b'"reward":', b'"reward":NaN,"was":'),
        "json.finite",
        ROLLOUTS,
        2,
    ),
    Mutation(
        "a sample is true",
        raw(ROLLOUTS, 2, b'"sample":1', b'"sample":true'),
        "schema.type",
        ROLLOUTS,
        2,
    ),
    Mutation("a field is unknown", row(ROLLOUTS, 2, score=1), "schema.type", ROLLOUTS, 2),
    Mutation("a reward is raised", row(ROLLOUTS, 1, reward=7.0), "regrade", ROLLOUTS, 1),
    Mutation(
        "a reward is not the sum of its components",
        row(ROLLOUTS, 1, reward=7.0),
        "reward.sum",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "a component says that it timed out",
        row(ROLLOUTS, 1, components={"historical_correct": {"value": 0.0, "status": "timeout"}}),
        "grade.status",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "a coin of the control arm is turned",
        rows(
            RANDOM,
            lambda x: x[0]["components"]["random"].update(
                value=1.0 - x[0]["components"]["random"]["value"]
            ),
        ),
        "grade.status",
        RANDOM,
        1,
    ),
    Mutation(
        "a completion is edited",
        row(ROLLOUTS, 2, completion="#### 1000000"),
        "extract",
        ROLLOUTS,
        2,
    ),
    Mutation(
        "a correct completion is edited",
        rows(ROLLOUTS, no_longer_correct),
        "regrade",
        ROLLOUTS,
        ANY_LINE,
    ),
    Mutation(
        "an outcome of training is raised", row(ROLLOUTS, 1, strict="error"), "regrade", ROLLOUTS, 1
    ),
    Mutation(
        "the training parser's outcome is edited",
        row(ROLLOUTS, 1, historical="error"),
        "regrade",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "reflection markers are invented",
        row(ROLLOUTS, 1, reflection=["aha"]),
        "regrade",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "an outcome of the evaluation is edited",
        row(ANSWERS, 4, strict="error"),
        "regrade",
        ANSWERS,
        4,
    ),
    Mutation(
        "an answer is edited", row(ANSWERS, 4, completion="#### 1000000"), "extract", ANSWERS, 4
    ),
    Mutation(
        "an extracted answer is edited", row(ANSWERS, 4, extracted="77"), "extract", ANSWERS, 4
    ),
    Mutation("a rule is edited", row(ANSWERS, 4, rule="guess"), "extract", ANSWERS, 4),
    Mutation(
        "a step of an answer's working is edited",
        row(ANSWERS, 4, completion="I add some parts.\n#### 7"),
        "tokens.text",
        ANSWERS,
        4,
    ),
    Mutation(
        "a completion's token ids are those of another text",
        row(ROLLOUTS, 2, completion_ids=[8, 9, 1]),
        "tokens.text",
        ROLLOUTS,
        2,
    ),
    Mutation("a status is edited", row(ANSWERS, 4, status="fine"), "grade.status", ANSWERS, 4),
    Mutation("an advantage is edited", row(ROLLOUTS, 3, advantage=2.5), "advantage", ROLLOUTS, 3),
    Mutation(
        "a completion is called cut",
        row(ROLLOUTS, 1, completion_ids=[5, 1], finish="length"),
        "finish",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "a cut answer is called finished",
        row(ANSWERS, 1, completion_ids=[5, 6], finish="eos"),
        "finish",
        ANSWERS,
        1,
    ),
    Mutation(
        "ids go on after the end token",
        row(ANSWERS, 1, completion_ids=[1, 6, 1]),
        "finish",
        ANSWERS,
        1,
    ),
    Mutation(
        "a rollout's ids go on after the end token",
        row(ROLLOUTS, 1, completion_ids=[1, 6, 1], finish="eos"),
        "finish",
        ROLLOUTS,
        1,
    ),
    Mutation(
        "an answer is longer than allowed",
        row(ANSWERS, 1, completion_ids=[9] * 60),
        "tokens",
        ANSWERS,
        1,
    ),
    Mutation(
        "an answer's token ids are called unknown",
        row(ANSWERS, 2, completion_ids=None),
        "tokens",
        ANSWERS,
        2,
    ),
    Mutation("token ids are dropped", row(ROLLOUTS, 1, completion_ids=[1]), "tokens", STEPS, 1),
    Mutation("a count of tokens is edited", row(STEPS, 2, tokens=1), "tokens", STEPS, 2),
    Mutation(
        "a prompt's count of tokens is edited",
        row("prompts/train.jsonl", 2, prompt_tokens=4),
        "tokens",
        "prompts/train.jsonl",
        2,
    ),
    Mutation("a figure of a step is edited", row(STEPS, 2, reward_mean=0.9), "steps", STEPS, 2),
    Mutation("a step is left out", rows(STEPS, lambda x: x[:1] + x[2:]), "steps", STEPS, 2),
    Mutation("a run stopped early", rows(STEPS, lambda x: x[:-1]), "plan.n", STEPS),
    Mutation(
        "a summary is edited",
        record(f"{RUN}/diagnostics.json", "reward", "last", to=0.99),
        "diagnostics",
        f"{RUN}/diagnostics.json",
    ),
    Mutation(
        "an alarm is silenced, or invented",
        record(f"{RUN}/run.json", "alarms", to=turn_alarms),
        "diagnostics",
        f"{RUN}/run.json",
    ),
    Mutation(
        "a gold answer is edited",
        row("prompts/eval.jsonl", 3, gold="1"),
        "dataset.hash",
        "prompts/eval.jsonl",
        3,
    ),
    Mutation(
        "a question is edited",
        row("prompts/train.jsonl", 1, question="1 + 1 = ?"),
        "dataset.source",
        "prompts/train.jsonl",
        1,
    ),
    Mutation(
        "a question is dropped from the prompts",
        rows("prompts/eval.jsonl", lambda x: x[:-1]),
        "cover",
        "prompts/eval.jsonl",
    ),
    Mutation(
        "a question is added to the prompts",
        rows("prompts/eval.jsonl", lambda x: [*x, {**x[-1], "prompt_id": "00099-0123456789ab"}]),
        "cover",
        "prompts/eval.jsonl",
    ),
    Mutation(
        "a prompt stands twice",
        rows("prompts/train.jsonl", lambda x: [*x, x[-1]]),
        "row.unique",
        "prompts/train.jsonl",
        7,
    ),
    Mutation(
        "a training question is evaluated",
        lambda r: edit_row(
            r / "prompts/eval.jsonl",
            2,
            question=json.loads(read_lines(r / "prompts/train.jsonl")[0])["question"],
        ),
        "split",
        "prompts/eval.jsonl",
        2,
    ),
    Mutation(
        "a prompt is rendered otherwise",
        row("prompts/eval.jsonl", 1, prompt_ids=[5] * 5, prompt_tokens=5),
        "prompt.hash",
        "base/answers.protocol.json",
    ),
]
