"""Tampering with plan, runs, adapters and protocols, all digests mended."""

from __future__ import annotations

import shutil
from typing import Any

from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from mutations.kinds import (
    ANSWERS,
    ANY_LINE,
    OTHER,
    RUN,
    STEPS,
    Mutation,
    Tamper,
    copy_set,
    erase_attempt,
    journal,
    nan,
    record,
    remove,
    row,
    rows,
    shift,
    swap_adapters,
    swap_runs,
    tensors,
    text,
    zeros,
)
from tampering import edit_json


def exception_for(answers: str) -> Tamper:
    """Record an exception that nothing calls for."""

    def edit(tree: dict[str, Any]) -> None:
        told = {"answers": answers.removesuffix(".jsonl"), "field": "device"}
        told |= {"base": "cpu, 1 threads", "found": "cuda"}
        after = {key: tree.pop(key) for key in ("adapters", "arms", "floor", "rates")}
        tree.update(allowed=[told], **after)

    return lambda root: edit_json(root / "analysis/comparison.json", edit)


EMPTY_FIELD = "vllm_importance_sampling_cap"  # of TRL's configuration, null in the study
RECORDS = [
    Mutation(
        "the seeds of the plan change",
        text("study.yaml", "- 2\n", "- 3\n"),
        "plan.match",
        "manifest.json",
    ),
    Mutation(
        "the count of shared words is edited",
        record(
            "prompts/selection.json", "overlap", to=lambda o: {**o, "sharing": o["sharing"] + 1}
        ),
        "split",
        "prompts/selection.json",
    ),
    Mutation(
        "the margin of the plan changes",
        text("study.yaml", "margin_points: 2.0", "margin_points: 90.0"),
        "plan.match",
        "manifest.json",
    ),
    Mutation(
        "the plan is not readable",
        text("study.yaml", "seeds:", "seeds: ["),
        "plan.match",
        "study.yaml",
        ANY_LINE,
    ),
    Mutation(
        "a run claims another seed",
        record(f"{RUN}/run.json", "seed", to=2),
        "plan.match",
        f"{RUN}/run.json",
    ),
    Mutation(
        "an arm was trained hotter",
        record(f"{RUN}/run.json", "effective_grpo", "temperature", to=1.3),
        "arm.config",
        f"{RUN}/run.json",
    ),
    Mutation(
        "an empty field of the configuration is dropped",
        record(
            f"{RUN}/run.json",
            "effective_grpo",
            to=lambda found: {k: v for k, v in found.items() if k != EMPTY_FIELD},
        ),
        "arm.config",
        "arms/historical/seed-2/run.json",
    ),
    Mutation(
        "an arm was trained on other software",
        record(f"{RUN}/run.json", "versions", "torch", to="9"),
        "arm.config",
        "arms/historical/seed-2/run.json",
    ),
    Mutation(
        "a run was asked for something else",
        record(f"{RUN}/run.json", "requested_grpo", "beta", to=0.1),
        "arm.config",
        f"{RUN}/run.json",
    ),
    Mutation(
        "an arm saw other prompts",
        rows(
            f"{OTHER}/rollouts.jsonl",
            lambda x: [r.update(prompt_id=x[4]["prompt_id"]) for r in x[:4]] and None,
        ),
        "arm.order",
        f"{OTHER}/rollouts.jsonl",
        1,
    ),
    Mutation(
        "a run claims fewer completions",
        record(f"{RUN}/run.json", "rollouts_written", to=31),
        "plan.n",
        f"{RUN}/run.json",
    ),
    Mutation(
        "rows are older than the plan",
        journal(STEPS, lambda e: e[0].update(plan_digest="sha256:" + "0" * 64)),
        "plan.first",
        f"{RUN}/steps.journal.jsonl",
        1,
    ),
    Mutation("a run is left out", remove(RUN, f"replay/{RUN}"), "arms.all", ""),
    Mutation(
        "an unplanned run is added",
        lambda r: shutil.copytree(r / RUN, r / "arms/historical/seed-9"),
        "arms.all",
        "arms/historical/seed-9",
    ),
    Mutation(
        "the answers of a checkpoint lie below a run",
        lambda r: copy_set(r, f"{RUN}/checkpoint-2"),
        "arms.all",
        f"{RUN}/checkpoint-2/answers",
    ),
    Mutation(
        "the answers of a checkpoint lie apart",
        lambda r: copy_set(r, "more/checkpoint-2"),
        "arms.all",
        "more/checkpoint-2/answers",
    ),
    Mutation(
        "a checkpoint's adapter lies beside the last one",
        lambda r: shutil.copytree(r / RUN / "adapter", r / RUN / "checkpoint-2"),
        "arms.all",
        f"{RUN}/checkpoint-2",
    ),
    Mutation("an attempt is erased", journal(STEPS, erase_attempt), "attempts", f"{RUN}/run.json"),
    Mutation(
        "attempts are not numbered",
        journal(STEPS, lambda e: e[1].update(number=3)),
        "attempts",
        f"{RUN}/steps.journal.jsonl",
        2,
    ),
    Mutation(
        "rows of another run are spliced in",
        lambda r: (
            [
                shutil.copy(r / OTHER / n, r / RUN / n)
                for n in ("rollouts.jsonl", "rollouts.journal.jsonl")
            ]
            and None
        ),
        "chain.run",
        f"{RUN}/rollouts.journal.jsonl",
        1,
    ),
    Mutation("adapters are swapped", swap_adapters, "adapter.fp", f"{RUN}/adapter"),
    Mutation("labels of two arms are exchanged", swap_runs, "adapter.arm", f"{RUN}/run.json"),
    Mutation(
        "components of a run are edited",
        record(f"{RUN}/run.json", "components", to={"length": 1.0}),
        "adapter.arm",
        f"{RUN}/run.json",
    ),
    Mutation(
        "alpha of an adapter is edited",
        record(f"{RUN}/adapter/{ADAPTER_CONFIG}", "lora_alpha", to=8),
        "adapter.config",
        f"{RUN}/adapter/{ADAPTER_CONFIG}",
    ),
    Mutation(
        "an adapter names another base",
        record(f"{RUN}/adapter/{ADAPTER_CONFIG}", "base_model_name_or_path", to="gpt2"),
        "adapter.config",
        f"{RUN}/adapter/{ADAPTER_CONFIG}",
    ),
    Mutation(
        "an adapter holds NaN",
        lambda r: tensors(r, nan),
        "tensor.finite",
        f"{RUN}/adapter/{ADAPTER_WEIGHTS}",
    ),
    Mutation(
        "an adapter is all zeros",
        lambda r: tensors(r, zeros),
        "adapter.effect",
        f"{RUN}/adapter/{ADAPTER_WEIGHTS}",
    ),
    Mutation(
        "the digest of an adapter is edited",
        record(f"{RUN}/run.json", "adapter_digest", to="sha256:0"),
        "adapter.fp",
        f"{RUN}/adapter",
    ),
    Mutation(
        "a run was made on another base",
        record(f"{OTHER}/run.json", "base_digest", to="sha256:0"),
        "base.pin",
        f"{OTHER}/run.json",
    ),
    Mutation(
        "a tensor of the base is another",
        record("base/tensors.json", "tensors", 3, "sha256", to="0" * 64),
        "base.pin",
        "base/tensors.json",
    ),
    Mutation(
        "a tensor of the base is left out",
        record("base/tensors.json", "tensors", to=lambda listed: listed[1:]),
        "base.pin",
        "base/tensors.json",
    ),
    Mutation(
        "the base's record is of another base",
        record("base/tensors.json", "base_digest", to="sha256:0"),
        "base.pin",
        "base/tensors.json",
    ),
    Mutation(
        "an adapter is of another rank than its configuration says",
        lambda r: tensors(r, zeros, rank=3),
        "adapter.config",
        f"{RUN}/adapter/{ADAPTER_WEIGHTS}",
    ),
    Mutation(
        "a side answered hotter",
        record(f"{RUN}/answers.protocol.json", "generation", "temperature", to=0.7),
        "protocol",
        f"{RUN}/answers.protocol.json",
    ),
    Mutation(
        "a side answered in other batches",
        record(f"{RUN}/answers.protocol.json", "batch_size", to=9),
        "protocol",
        f"{RUN}/answers.protocol.json",
    ),
    Mutation(
        "a side answered on another device",
        record("base/floor.protocol.json", "device", to="cuda, 1"),
        "protocol",
        "base/floor.protocol.json",
    ),
    Mutation("pairs are shifted by one", rows(ANSWERS, shift), "pair.key", ANSWERS, 1),
    Mutation("answers are called the base's", row(ANSWERS, 5, side="base"), "pair.key", ANSWERS, 5),
    Mutation(
        "a replay differs",
        row(f"replay/{ANSWERS}", 6, completion="no"),
        "replay",
        f"replay/{ANSWERS}",
        6,
    ),
    Mutation(
        "answers are said to be generated again in vain",
        record("analysis/replay.json", "equal", to=167),
        "replay",
        "analysis/replay.json",
    ),
    Mutation("the record of the replay is removed", remove("analysis/replay.json"), "replay", ""),
    Mutation(
        "a replay answered hotter",
        record(f"replay/{RUN}/answers.protocol.json", "generation", "temperature", to=0.7),
        "protocol",
        f"replay/{RUN}/answers.protocol.json",
    ),
    Mutation(
        "an exception is invented", exception_for(ANSWERS), "protocol", "analysis/comparison.json"
    ),
    *(
        Mutation(
            f"a protocol claims another {field}",
            record("base/answers.protocol.json", field, to=value),
            "protocol",
            "base/answers.protocol.json",
        )
        for field, value in (
            ("backend", "vllm"),
            ("decoder", "server"),
            ("device", "endpoint"),
        )
    ),
]
