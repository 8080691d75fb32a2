"""Wrong inputs: one clear line on stderr, no traceback, exit code 2; and what is not here, 5."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from command import TRAIN_EXTRA, Call, run, run_without
from small_study import write_study

from study_builder import build

PLAN = """\
name: demo
model: {id: organism}
task: {name: arithmetic, train_prompts: 16, eval_prompts: 16}
arms: [correctness, random]
control: random
seeds: [0, 1, 2]
grpo:
  max_steps: 20
lora: {r: 4}
evaluation: {max_new_tokens: 16}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(text: str = PLAN, **changes: str) -> Path:
    """Write a plan with some of its text replaced."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = Path("study.yaml")
    path.write_text(text, "utf-8")
    return path


def edited(old: str, new: str) -> Path:
    assert old in PLAN
    return plan(PLAN.replace(old, new))


def task(train: list[object], evaluation: list[object], extra: str = "") -> Path:
    """Write a plan on a JSONL task of these rows."""
    for name, rows in (("train", train), ("eval", evaluation)):
        path = Path("task") / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return edited("name: arithmetic,", f"name: jsonl, path: task,{extra}")


def rows(prefix: str, count: int = 3) -> list[object]:
    return [{"question": f"{prefix} {n} + 1?", "answer": str(n + 1)} for n in range(count)]


def test_a_sound_plan_is_described_with_its_digest(call: Call) -> None:
    said = call("plan", plan())
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Study demo: 2 arms x 3 seeds on organism, results in results/demo")
    assert said.out.splitlines()[-1].startswith("Digest: sha256:")
    shown = json.loads(call("plan", plan(), "--format", "json").out)
    assert shown["digest"] == said.out.splitlines()[-1].removeprefix("Digest: ")
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("max_steps: 20", "max_step: 20", "study.yaml:8:3: grpo.max_step: "),
        ("evaluation:", "evalution:", "study.yaml:10:1: unknown key `evalution`. Did you mean"),
        ("[correctness, random]", "[corectness, random]", "Did you mean 'correctness'?"),
        ("organism", "./none", "model.id: expected `organism`, a model folder or a hub id"),
        ("organism", "/none/model", "model.id: expected `organism`, a model folder or a hub id"),
        ("max_steps: 20", "max_steps: 20\n  num_generations: 1",
         "expected a group of 2 or more, found 1"),
        ("max_steps: 20", "max_steps: 20\n  num_generations: 8\n"
         "  per_device_train_batch_size: 12",
         "expected a generation batch (here 12 completions) that is a multiple of "
         "num_generations=8"),
        ("control: random", "control: placebo", "control: expected one of the arms"),
        ("name: demo", "name: ../demo", "name: expected a name of 1 to 64 characters"),
    ],
)  # fmt: skip
def test_a_fault_in_the_plan_is_told_by_place(call: Call, old: str, new: str, told: str) -> None:
    said = call("plan", edited(old, new))
    assert said.code == 2
    assert said.line.startswith("ahalab: ")
    assert told in said.line
    assert said.out == ""


def test_a_misspelt_key_in_a_process_of_its_own_is_one_line_and_exit_code_2() -> None:
    said = run("plan", edited("max_steps", "max_step"), cwd=Path.cwd())
    assert said.code == 2
    assert said.line.startswith("ahalab: study.yaml:8:3: ")
    assert "max_steps" in said.line


@pytest.mark.parametrize("command", ["plan", "run", "analyze", "ablate", "report", "evaluate"])
def test_a_missing_plan_is_told_with_what_to_do(call: Call, command: str) -> None:
    said = call(command, "none.yaml")
    assert said.code == 2
    assert said.line == (
        "ahalab: none.yaml: expected a study plan, or a folder of results that holds one, found: "
        "No such file or directory. `ahalab init` writes a plan."
    )


@pytest.mark.parametrize("command", ["plan", "analyze", "run"])
def test_a_folder_without_a_plan_is_told(call: Call, command: str) -> None:
    Path("folder").mkdir()
    said = call(command, "folder")
    assert said.code == 2
    assert "folder/study.yaml: expected a study plan" in said.line


# The task, before anything is trained.


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_evaluation_question_that_was_trained_on_is_refused_and_listed(
    call: Call, command: str
) -> None:
    shared = {"question": "What  is 2 PLUS 2", "answer": "4"}
    train = [*rows("Train"), {"question": "what is 2 plus 2?", "answer": "4"}]
    said = call(command, task(train, [*rows("Eval"), shared]))
    assert said.code == 2
    assert "expected no evaluation question among the training questions, found 1: " in said.line
    assert "task/eval.jsonl:4 = task/train.jsonl:4" in said.line
    assert not Path("results").exists()


def test_an_empty_task_file_is_refused(call: Call) -> None:
    said = call("plan", task([], rows("Eval")))
    assert said.code == 2
    assert "task/train.jsonl: expected at least one question, found an empty file" in said.line


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"question": "How many?"}, "expected a value in `answer`, found none"),
        ({"question": "How many?", "answer": ""}, "expected a value in `answer`, found an empty"),
        ({"answer": "4"}, "expected a value in `question`, found none"),
        ({"question": "How many?", "answer": [4]}, "expected text or a number in `answer`"),
        ([1], "expected a JSON object, found list"),
    ],
)
def test_a_task_row_that_cannot_be_used_is_named_by_line(
    call: Call, row: object, told: str
) -> None:
    said = call("plan", task(rows("Train"), [*rows("Eval", 2), row]))
    assert said.code == 2
    assert said.line.startswith("ahalab: task/eval.jsonl:3: ")
    assert told in said.line


def test_a_gold_that_the_scorer_cannot_read_is_named_by_line(call: Call) -> None:
    bad = {"question": "Who?", "answer": "x" * 5000}
    said = call("plan", task(rows("Train"), [*rows("Eval"), bad]))
    assert said.code == 2
    assert said.line.startswith("ahalab: task/eval.jsonl:4: expected a gold answer that can be")


def test_a_row_cut_in_two_is_named_by_line(call: Call) -> None:
    path = task(rows("Train"), rows("Eval"))
    Path("task/train.jsonl").write_bytes(b'{"question": "a", "answer": "1"}\n{"question": "b\n')
    said = call("plan", path)
    assert said.code == 2
    assert said.line.startswith("ahalab: task/train.jsonl:2: expected a JSON object, found")


def test_a_task_folder_that_is_not_there_is_told(call: Call) -> None:
    said = call("plan", edited("name: arithmetic,", "name: jsonl, path: nowhere,"))
    assert said.code == 2
    assert "nowhere: expected train.jsonl for the train split, found no such folder" in said.line


def test_fewer_training_questions_than_one_batch_needs_are_told_before_training(
    call: Call,
) -> None:
    path = task(rows("Train", 2), rows("Eval"))
    path.write_text(
        path.read_text("utf-8").replace(
            "  max_steps: 20",
            "  max_steps: 20\n  num_generations: 4\n  per_device_train_batch_size: 16",
        ),
        "utf-8",
    )
    said = call("plan", path)
    assert said.code == 2
    assert (
        "expected at least the 4 training questions of one generation batch, found 2" in said.line
    )


def test_what_lies_on_a_hub_is_not_fetched_by_a_check_of_the_plan(call: Call) -> None:
    said = call("plan", edited("organism", "owner/model"))
    assert said.code == 0
    assert said.err == "Not checked: model owner/model: fetched from the hub when the study runs.\n"


def test_the_preset_plans_are_sound(call: Call) -> None:
    for preset in ("organism", "gsm8k"):
        path = Path(f"{preset}.yaml")
        assert call("init", path, "--preset", preset).code == 0
        assert call("plan", path).code == 0


def test_init_overwrites_nothing(call: Call) -> None:
    plan().write_text("mine", "utf-8")
    said = call("init")
    assert said.code == 2
    assert said.line.startswith("ahalab: study.yaml: expected no file there, found one")
    assert Path("study.yaml").read_text("utf-8") == "mine"


# Results that are not this plan's.


def test_results_of_another_plan_are_refused_and_the_keys_named(call: Call, tmp_path: Path) -> None:
    write_study(tmp_path / "results" / "demo", "CW", {("random", 0): "CC"})
    for command in ("plan", "analyze", "run"):
        said = call(command, plan())
        assert said.code == 2
        assert "results/demo: expected results of this plan, found those of another" in said.line
        assert "seeds" in said.line


def test_a_study_whose_prompts_are_drawn_needs_its_task_no_more(call: Call, tmp_path: Path) -> None:
    from small_study import make_prompt, put

    from ahalab.pipeline.study import open_study
    from ahalab.store.rows import write_rows
    from ahalab.tasks.prepare import prompt_file

    path = task(rows("Train"), rows("Eval"))
    study, paths = open_study(path, Path("results"))
    for split in ("train", "eval"):
        write_rows(prompt_file(study, paths, split), [make_prompt(0, "x")])  # type: ignore[arg-type]
    put(paths.prompt_report, b"{}")
    Path("task/train.jsonl").unlink()
    assert call("plan", path).code == 0


def test_unfinished_studies_are_incomplete_and_resumable(call: Call, tmp_path: Path) -> None:
    root = tmp_path / "small"
    write_study(root, "CW", {}, unfinished=[("random", 0)])
    said = call("analyze", root)
    assert said.code == 4
    assert said.line.endswith("no adapter has answers yet. Run: ahalab evaluate")


def test_a_run_folder_without_diagnostics_is_told(call: Call) -> None:
    said = call("diagnose", "nowhere")
    assert said.code == 2
    assert "expected a finished run's diagnostics, found none" in said.line


def test_an_unknown_arm_seed_or_cell_of_a_stage_is_told(call: Call) -> None:
    path = plan()
    said = call("train", path, "--arm", "none", "--seed", "0")
    assert said.code == 2
    assert "none" in said.line
    said = call("train", path, "--arm", "random", "--seed", "9")
    assert "--seed: expected one of the plan's seeds [0, 1, 2], found 9" in said.line
    said = call("evaluate", path, "--cell", "arms/random/seed-9")
    assert said.code == 2
    assert "--cell: expected one of base, floor, " in said.line


def test_an_error_message_obeys_no_escape_sequence(call: Call, tmp_path: Path) -> None:
    said = call("analyze", tmp_path / "a\x1b[31m\nb")
    assert said.code == 2
    assert "^[[31m b" in said.line
    assert "\x1b" not in said.err


@pytest.mark.parametrize(
    "number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EMFILE]
)
def test_what_the_machine_refuses_is_one_line_wherever_a_stage_meets_it(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    from ahalab.analyze import compare

    _, paths = write_study(tmp_path / "small", "CW", {("random", 0): "CC"})

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/some/folder")

    monkeypatch.setattr(compare, "analyze", refused)
    said = call("analyze", paths.root)
    assert said.code == 2
    assert said.err.startswith(
        f"ahalab: /some/folder: expected to read or write it, found: {os.strerror(number)}. "
    )
    assert said.err.count("\n") == 1


def test_another_fault_of_the_system_is_a_bug_and_keeps_its_traceback(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahalab.analyze import compare

    _, paths = write_study(tmp_path / "small", "CW", {("random", 0): "CC"})

    def lost(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "/gone")

    monkeypatch.setattr(compare, "analyze", lost)
    with pytest.raises(FileNotFoundError):
        call("analyze", paths.root)


def test_an_interrupt_exits_130_and_says_how_to_resume(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ahalab.analyze.compare as compare

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    write_study(tmp_path / "small", "CW", {("random", 0): "CC"})
    monkeypatch.setattr(compare, "analyze", interrupted)
    said = call("analyze", tmp_path / "small")
    assert said.code == 130
    assert "The same command resumes." in said.line


# What is needed and not here.


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "study.yaml", "--arm", "random", "--seed", "0"],
        ["evaluate", "study.yaml"],
        ["run", "study.yaml"],
        ["organism", "build", "out"],
    ],
)
def test_training_without_the_extra_exits_5_with_the_line_to_type(arguments: list[str]) -> None:
    plan()
    said = run_without(TRAIN_EXTRA, *arguments)
    assert said.code == 5
    assert "Type: pip install 'ahalab[train]'" in said.line
    assert "torch" in said.line
    assert not Path("out").exists()
    assert not Path("results/demo/arms").exists()


def test_what_needs_no_torch_works_without_the_extra(tmp_path: Path) -> None:
    root = tmp_path / "small"
    write_study(root, "CWCF", {("random", 0): "CCCC", ("random", 1): "CWWC"}, floor="CWCF")
    for arguments in (
        ["analyze", root], ["ablate", root], ["diagnose", root / "arms/random/seed-0"],
        ["demo", "--run", root], ["score", "#### 7", "--gold", "7"], ["plan", plan()],
    ):  # fmt: skip
        said = run_without(TRAIN_EXTRA, *arguments)
        assert said.code == 0, said.err
        assert said.out


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole, sealed study; nobody may write to it."""
    return build(tmp_path_factory.mktemp("sound") / "study")


@pytest.mark.parametrize("option", ["--root", "--plan"])
@pytest.mark.parametrize("digest", ["zzz", "sha256:12", "sha256:" + "g" * 64])
def test_an_anchor_that_is_no_digest_is_refused_before_anything_is_checked(
    call: Call, sound: Path, option: str, digest: str
) -> None:
    refused = call("verify", sound, option, digest)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith(f"ahalab: {option}: expected sha256: and 64 hex digits, found")


def test_anchors_published_earlier_are_met_or_fail_under_their_own_name(
    call: Call, sound: Path
) -> None:
    manifest = json.loads((sound / "manifest.json").read_text("utf-8"))
    held = ["--root", manifest["root"], "--plan", manifest["plan_digest"]]
    assert call("verify", sound, *held).code == 0
    other = call("verify", sound, "--plan", "sha256:" + "0" * 64, "--format", "json")
    assert other.code == 1
    failed = [c["name"] for c in json.loads(other.out)["checks"] if c["status"] == "failed"]
    assert failed == ["plan.anchor"]


def test_a_name_that_is_like_no_arm_gets_no_suggestion(call: Call) -> None:
    refused = call("arms", "check", "qqq")
    assert refused.code == 2
    assert "Did you mean" not in refused.err
    assert "Did you mean 'format_only'?" in call("arms", "check", "formt_only").err


def test_verify_prints_one_json_object_with_the_fields_of_the_contract(
    call: Call, sound: Path
) -> None:
    said = json.loads(call("verify", sound, "--format", "json").out)
    assert said["result"] == "PASSED"
    assert {"name", "status", "count", "failures"} <= said["checks"][0].keys()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("preflight", "study.yaml", "--jobs", "0"), "greater than or equal to 1"),
        (("runn",), "No such command 'runn'"),
        (("train", "study.yaml"), "Missing option"),
        (("verify", "x", "--no-such-flag"), "--no-such-flag"),
    ],
)
def test_a_usage_error_is_one_line_that_says_where_to_look(
    call: Call, arguments: tuple[str, ...], said: str
) -> None:
    told = call(*arguments)
    assert (told.code, told.out) == (2, "")
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("ahalab: ")
    assert said in told.err
    assert "--help" in told.err
