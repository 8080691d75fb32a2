"""Pre-flight on the organism: what would make a run worthless is refused before its first step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ahalab.pipeline.clearance import due, read_preflight
from ahalab.records.preflight import Preflight
from ahalab.store.memory import available_bytes
from ahalab.store.models import organism_folder
from lab import PLAN, Trained, WarmLab, ahalab, rollouts_of, write_plan

pytestmark = pytest.mark.train
Fresh = Callable[..., Trained]
CUT = PLAN.replace("max_completion_length: 40", "max_completion_length: 4")
TRAIN = ("--arm", "historical", "--seed", 1)
OWN = """\
calls = 0
def brief(completions, **_):
    global calls
    calls += 1
    open({place!r}, "w").write(str(calls))
    return [float(len(c[0]["content"]) < 20) for c in completions]
"""


def check(warm: WarmLab, study: Trained, code: int = 0) -> tuple[Preflight, str]:
    said = warm.run("preflight", study.plan_file, "--out", study.paths.root.parent, code=code)
    return read_preflight(study.paths), said


def level(found: Preflight, name: str) -> str:
    (one,) = [c for c in found.checks if c.name == name]
    return one.level


def model_with(folder: Path, **changes: Any) -> Path:
    """Return a copy of the organism with fields of its JSON files, by file name, changed."""
    shutil.copytree(organism_folder(), folder)
    for name, fields in changes.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return folder


def test_a_sound_study_is_ready_in_seconds_and_nothing_was_begun(
    warm: WarmLab, fresh: Fresh
) -> None:
    study = fresh()
    found, said = check(warm, study)
    assert found.refused == ()
    assert "READY: " in said
    assert [c.name for c in found.checks] == [
        "prompts", "overlap", "shared words", "template", "truncation", "accuracy", "adapter",
        "memory", "arm historical", "trackers",
    ]  # fmt: skip
    assert {c.name: c.level for c in found.checks if c.level == "warning"} == {
        "arm historical": "warning"
    }
    assert "thinking-only, right-then-changed" in said
    assert found.seconds < 60  # 1.6 s on a machine that is not busy
    assert (found.probe.prompts, found.probe.samples) == (8, 2)
    assert not study.paths.root.exists()


def test_the_findings_are_one_json_object_where_asked(warm: WarmLab, fresh: Fresh) -> None:
    study = fresh()
    out = ahalab("preflight", study.plan_file, "--out", study.paths.root.parent, "--format", "json")
    assert out.returncode == 0, out.stderr
    shown = json.loads(out.stdout)
    assert shown["schema"] == "ahalab.preflight/1"
    assert shown == json.loads((study.paths.work / "preflight.json").read_bytes())
    parts = {part["name"]: part for part in shown["memory"]["parts"]}
    # 419 words of 128; 4 layers of 4 x 128^2, 3 x 128 x 352 and two norms; a last norm; in fp32.
    layer = 4 * 128 * 128 + 3 * 128 * 352 + 2 * 128
    assert parts["weights"]["bytes"] == 4 * (419 * 128 + 4 * layer + 128)
    # 28 layers of rank 4; weights, gradients and two moments, all in fp32.
    assert parts["adapter"]["bytes"] == 39_424 * 4 * 4
    assert parts["logits"]["bytes"] == 16 * 40 * 419 * 4
    assert parts["allocator"]["bytes"] == parts["activations"]["bytes"]  # on a CPU
    assert shown["memory"]["bytes"] == sum(part["bytes"] for part in parts.values())


def test_training_whose_every_answer_is_cut_is_refused_unless_forced(
    warm: WarmLab, fresh: Fresh
) -> None:
    study = fresh(CUT)
    found, said = check(warm, study, code=1)
    assert [c.name for c in found.refused] == ["truncation"]
    assert "16 of 16 completions cut at 4 tokens. To do: raise grpo.max_completion_length" in said
    train = ("train", study.plan_file, "--out", study.paths.root.parent, *TRAIN)
    said = warm.run(*train, code=1)
    assert "ahalab: pre-flight: truncation: 16 of 16" in said
    assert "`--force` goes on" in said
    assert "Traceback" not in said
    assert not study.paths.root.exists()
    said = warm.run(*train, "--force")
    assert "pre-flight: refused, truncation" in said
    assert len(rollouts_of(study.paths.run("historical", 1))) == 96
    assert read_preflight(study.paths).forced


def test_a_refused_run_leaves_a_plan_that_can_be_mended(warm: WarmLab, fresh: Fresh) -> None:
    study = fresh(CUT)
    run = ("run", study.plan_file, "--out", study.paths.root.parent)
    done = ahalab(*run)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("ahalab: pre-flight: truncation: 16 of 16")
    assert not study.paths.root.exists()
    write_plan(study.plan_file.parent, PLAN)  # of the same name
    said = warm.run("train", *run[1:], *TRAIN)
    assert "pre-flight: 8 of 9 checks in order" in said or "warned of" in said
    assert study.paths.run("historical", 1).record.is_file()


def test_a_study_that_has_begun_is_not_checked_again(warm: WarmLab, study: Trained) -> None:
    said = warm.run("train", study.paths.root, "--arm", "random", "--seed", 1)
    assert "pre-flight" not in said
    assert "Nothing to do" in said
    assert not due(study.plan, study.paths)
    study.paths.run("random", 1).record.unlink()
    assert not due(study.plan, study.paths)


def test_a_study_that_has_not_begun_is_checked_once_for_its_plan(
    warm: WarmLab, fresh: Fresh
) -> None:
    begun = fresh()
    assert due(begun.plan, begun.paths)
    check(warm, begun)
    assert not due(begun.plan, begun.paths)  # it passed a moment ago
    place = begun.paths.work / "preflight.json"
    place.write_bytes(place.read_bytes().replace(b"sha256:", b"sha256:0"))
    assert due(begun.plan, begun.paths)  # of another plan
    place.write_bytes(b"{}\n")
    assert due(begun.plan, begun.paths)  # of another version


def test_an_end_that_the_template_never_writes_is_refused(
    warm: WarmLab, fresh: Fresh, tmp_path: Path
) -> None:
    model = model_with(
        tmp_path / "model",
        config={"eos_token_id": 0}, generation_config={"eos_token_id": 0},
        tokenizer_config={"eos_token": "<|pad|>"},
    )  # fmt: skip
    found, said = check(warm, fresh(PLAN.replace("organism", str(model))), code=1)
    assert {c.name for c in found.refused} == {"template", "truncation"}
    assert "the template writes '<|end|>' after an assistant's turn, generation ends at " in said


def test_a_template_that_ends_otherwise_is_warned_of_where_the_base_ends_all_the_same(
    warm: WarmLab, fresh: Fresh, tmp_path: Path
) -> None:
    model = model_with(tmp_path / "model")
    template = model / "chat_template.jinja"
    end = "+ '<|end|>' -"
    text = template.read_text()
    assert end in text
    other = "+ ('<|system|>' if message['role'] == 'assistant' else '<|end|>') -"
    template.write_text(text.replace(end, other))
    found, _ = check(warm, fresh(PLAN.replace("organism", str(model))))
    assert level(found, "template") == "warning"
    template.write_text(text.replace(end, other.replace("<|system|>", "")))
    found, _ = check(warm, fresh(PLAN.replace("organism", str(model))))
    assert level(found, "template") == "note"


@pytest.mark.parametrize(
    ("targets", "expected", "text"),
    [
        (
            "[q_projj]",
            "refused",
            "nothing to adapt is named q_projj. To do: set lora.target_modules to",
        ),
        ("'.*nowhere'", "refused", "Target modules"),
        ("[norm]", "refused", "nothing to adapt is named norm"),
        ("'.*norm'", "refused", "not supported"),
        ("[q_proj, k_projj]", "warning", "but nothing to adapt is named k_projj"),
        ("[q_proj, layers.0.mlp.up_proj]", "ok", ""),
        ("'.*q_proj'", "ok", ""),
    ],
)
def test_an_adapter_that_finds_no_place_is_refused_with_the_names_there_are(
    warm: WarmLab, fresh: Fresh, targets: str, expected: str, text: str
) -> None:
    study = fresh(PLAN.replace("lora: {r: 4}", f"lora: {{r: 4, target_modules: {targets}}}"))
    found, said = check(warm, study, code=int(expected == "refused"))
    assert level(found, "adapter") == expected
    if expected != "ok":
        assert "down_proj, embed_tokens, gate_proj, k_proj" in said
        assert text in said
    if expected == "refused":
        train = ("train", study.plan_file, "--out", study.paths.root.parent, *TRAIN, "--force")
        assert "`--force`" not in warm.run(*train, code=1)
        assert not study.paths.root.exists()


def test_a_plan_that_does_not_fit_is_refused_unless_forced(warm: WarmLab, fresh: Fresh) -> None:
    rows = 4 * (int((available_bytes() or 10**11) / (73 * 30_000)) // 4)  # 30 kB a token and more
    text = PLAN.replace("num_generations: 4", f"num_generations: {rows // 4}")
    study = fresh(text.replace("train_batch_size: 16", f"train_batch_size: {rows}"))
    found, said = check(warm, study, code=1)
    assert level(found, "memory") == "refused"
    assert "lower per_device_train_batch_size" in said
    assert found.memory.bytes > (found.memory.available_bytes or 0)


def test_dropped_prompts_are_counted_and_none_is_cut(warm: WarmLab, fresh: Fresh) -> None:
    found, _ = check(warm, fresh())
    lengths = found.checks[0].found
    assert "12 train, 0 dropped" in lengths
    longest = int(lengths.partition("longest ")[2].split()[0])
    text = PLAN.replace("eval_prompts: 12", f"eval_prompts: 12, max_prompt_tokens: {longest - 1}")
    found, _ = check(warm, fresh(text))
    assert " 0 dropped, longest " in found.checks[0].found  # of the evaluation
    dropped = int(found.checks[0].found.partition("train, ")[2].split()[0])
    assert dropped >= 1
    assert found.checks[0].level == ("warning" if dropped > 1.2 else "ok")


def test_questions_in_both_splits_are_wrong_input(
    warm: WarmLab, fresh: Fresh, tmp_path: Path
) -> None:
    for name in ("train", "eval"):
        rows = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(6)]
        path = tmp_path / "task" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = fresh(PLAN.replace("name: arithmetic", f"name: jsonl, path: {tmp_path / 'task'}"))
    said = warm.run("preflight", study.plan_file, "--out", study.paths.root.parent, code=2)
    assert "expected no evaluation question among the training questions, found 6" in said


def test_a_generated_task_that_scores_by_itself_is_noted(warm: WarmLab, fresh: Fresh) -> None:
    pytest.importorskip("reasoning_gym", reason="the [tasks] extra is not installed")
    task = "name: reasoning_gym, dataset: chain_sum, config: {max_terms: 3, max_digits: 2}"
    study = fresh(PLAN.replace("name: arithmetic", task))
    found, said = check(warm, study)
    assert level(found, "golds") == "note"
    assert "reasoning-gym scores chain_sum by code of its own" in said


def test_an_own_reward_is_attacked_by_the_command_and_left_alone_where_training_follows(
    warm: WarmLab, fresh: Fresh, tmp_path: Path
) -> None:
    place = tmp_path / "calls"
    (tmp_path / "mine.py").write_text(OWN.format(place=str(place)))
    text = PLAN.replace(
        "arms: [historical,", "arms: [{name: mine, components: {'mine:brief': 1.0}},"
    )
    study = fresh(text)
    found, said = check(warm, study)
    assert level(found, "arm mine") == "warning"
    assert "pays more than for an honest wrong answer: empty" in said
    assert int(place.read_text()) > 0
    place.unlink()
    (study.paths.work / "preflight.json").unlink()
    train = ("train", study.plan_file, "--out", study.paths.root.parent)
    said = warm.run(*train, "--arm", "mine", "--seed", 1)
    assert "arm mine: not attacked: mine:brief was not loaded" in said
    assert int(place.read_text()) == 6  # one batch a step: what training calls, and nothing else


def test_a_tracker_that_is_not_installed_is_refused(warm: WarmLab, fresh: Fresh) -> None:
    text = PLAN.replace("save_steps: 2", "save_steps: 2\n  report_to: nowhere")
    found, said = check(warm, fresh(text), code=1)
    assert level(found, "trackers") == "refused"
    assert "pip install nowhere" in said
