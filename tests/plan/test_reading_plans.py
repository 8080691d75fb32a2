# ruff: noqa: E501 (tables of faults, a line each)
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.plan.fields import MANAGED
from ahalab.plan.load import differing_keys, dump_plan, load_plan, parse_plan
from ahalab.plan.resolve import resolve
from ahalab.records.base import digest
from ahalab.records.plan import Plan


def refused(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "study.yaml")
    message = str(caught.value)
    assert message.startswith("study.yaml:")
    assert "\n" not in message
    return message


def with_grpo(text: str, *lines: str) -> str:
    return text.replace(
        "  max_steps: 20\n", "".join(f"  {line}\n" for line in ("max_steps: 20", *lines))
    )


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_a_minimal_plan_is_read_and_its_defaults_are_written_out(plan: Plan) -> None:
    assert [arm.name for arm in plan.arms] == ["correctness", "random"]
    assert plan.seeds == (0, 1)
    assert plan.grpo["num_generations"] == 8
    assert plan.grpo["beta"] == 0.0
    assert plan.grpo["loss_type"] == "dapo"
    assert plan.lora == {
        "bias": "none",
        "lora_alpha": 32,
        "lora_dropout": 0.0,
        "r": 4,
        "target_modules": "all-linear",
    }


def test_a_plan_is_read_from_a_file(plan_path: Path, plan: Plan) -> None:
    assert load_plan(plan_path) == plan
    plan_path.write_bytes(b"\xef\xbb\xbf" + plan_path.read_bytes())  # an editor's byte order mark
    assert load_plan(plan_path) == plan
    plan_path.write_bytes(plan_path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_plan(plan_path) == plan


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: demo", "nmae: demo", "study.yaml:1:1: unknown key `nmae`. Did you mean `name`?"),
        ("control:", "contrl:", "study.yaml:8:1: unknown key `contrl`. Did you mean `control`?"),
        (
            "  train_prompts: 16",
            "  train_prompt: 16",
            "study.yaml:5:3: unknown key `train_prompt` in task. Did you mean `train_prompts`?",
        ),
        (
            "{id: organism}",
            "{id: organism, dtpye: float32}",
            "study.yaml:2:23: unknown key `dtpye` in model. Did you mean `dtype`?",
        ),
        (
            "max_steps: 20",
            "max_steps: 20\n  num_generation: 4",
            "study.yaml:12:3: grpo.num_generation: unknown field of TRL's GRPOConfig. "
            "Did you mean `num_generations`?",
        ),
        (
            "{r: 4}",
            "{r: 4, lora_alfa: 8}",
            "study.yaml:12:14: lora.lora_alfa: unknown field of PEFT's LoraConfig. "
            "Did you mean `lora_alpha`?",
        ),
        ("name: demo\n", "", "study.yaml:1:1: the key `name` is missing. Add it."),
        ("  eval_prompts: 16\n", "", "study.yaml:3:1: task: the key `eval_prompts` is missing. Add it."),
        ("name: demo", "name: demo\nname: again", 'study.yaml:2:1: expected YAML 1.2, found: found duplicate key "name"'),
        ("max_steps: 20", "max_steps: 20\n  max_steps: 21", 'study.yaml:12:3: expected YAML 1.2, found: found duplicate key "max_steps"'),
        ("  max_new_tokens: 16", "  max_new_tokens: '16'", "study.yaml:14:3: evaluation.max_new_tokens: expected `int`, got `str`"),
        ("seeds: [0, 1]", "seeds: [0, true]", "study.yaml:9:12: seeds.1: expected `int`, got `bool`"),
        ("seeds: [0, 1]", "seeds: [0, 1.0]", "study.yaml:9:12: seeds.1: expected `int`, got `float`"),
        ("seeds: [0, 1]", "seeds: 3", "study.yaml:9:1: seeds: expected `array`, got `int`"),
        ("max_steps: 20", "max_steps: many", "study.yaml:11:3: grpo.max_steps: expected int, found str 'many'"),
        ("max_steps: 20", "max_steps: 20\n  learning_rate: '1e-5'", "study.yaml:12:3: grpo.learning_rate: expected float, found str '1e-5'"),
        ("max_steps: 20", "max_steps: 20\n  beta: true", "study.yaml:12:3: grpo.beta: expected float, found bool True"),
        ("alpha: 0.05", "alpha: no", "study.yaml:16:3: analysis.alpha: expected `float`, got `str`"),
        ("alpha: 0.05", "primary: loose", "study.yaml:16:3: analysis.primary: invalid enum value 'loose'"),
        ("name: demo", "name: 1", "study.yaml:1:1: name: expected `str`, got `int`"),
        ("control: random", "control: rand", "study.yaml:8:1: control: expected one of the arms (correctness, random), found 'rand'"),
        ("control: random\n", "", "study.yaml:1:1: the key `control` is missing. Add it."),
        ("[correctness, random]", "[correctnes, random]", "study.yaml:7:8: arms.0: arm 'correctnes': expected one of the arms"),
        ("[correctness, random]", "[random, {name: x, components: {corect_strict: 1}}]", "study.yaml:7:16: arms.1: arm 'x': expected one of the components"),
        ("[correctness, random]", "[random, {name: x, components: {}}]", "study.yaml:7:16: arms.1: arm 'x': expected at least one component"),
        ("[correctness, random]", "[random, {name: correctness, components: {format: 1}}]", "study.yaml:7:16: arms.1: "),
        ("[correctness, random]", "[random, {name: historical, accept: [thinking-only, run-in]}]", "study.yaml:7:59: arms.1.accept.1: expected one of the attacks empty, "),
        ("[correctness, random]", "[random, {name: historical, accept: [run-on, run-on]}]", "study.yaml:7:52: arms.1.accept.1: expected different attacks, found run-on twice."),
        ("[correctness, random]", "[random, {name: historical, accept: run-on}]", "study.yaml:7:35: arms.1.accept: expected `array`, got `str`"),
        ("[correctness, random]", "[random, random]", "study.yaml:7:1: arms: expected different names"),
        ("[correctness, random]", "[]", "study.yaml:7:1: arms: expected at least one arm"),
        ("seeds: [0, 1]", "seeds: [1, 1]", "study.yaml:9:1: seeds: expected different whole numbers"),
        ("seeds: [0, 1]", "seeds: []", "study.yaml:9:1: seeds: expected different whole numbers"),
        ("seeds: [0, 1]", "seeds: [-1]", "study.yaml:9:1: seeds: expected numbers from 0"),
        ("seeds: [0, 1]", "seeds: [4294967296]", "study.yaml:9:1: seeds: expected numbers from 0"),
        ("max_steps: 20", "max_steps: 0", "study.yaml:11:3: grpo.max_steps: expected a number from 1 to 10,000,000, found 0"),
        ("max_steps: 20", "max_steps: 10000001", "study.yaml:11:3: grpo.max_steps: expected a number from 1 to 10,000,000"),
        ("max_new_tokens: 16", "max_new_tokens: 16\n  samples: 10001\n  temperature: 1.0", "study.yaml:15:3: evaluation.samples: expected a number from 1 to 10,000, found 10001"),
        ("  train_prompts: 16", "  train_prompts: 0", "study.yaml:5:3: task.train_prompts: expected "),
        ("  max_new_tokens: 16", "  max_new_tokens: 16\n  samples: 4", "study.yaml:15:3: evaluation.samples: expected 1 with greedy"),
        ("r: 4}\nevaluation:", "use_dora: true}\nevaluation:\n  cells_per_batch: 2", "study.yaml:14:3: evaluation.cells_per_batch: expected 1 with lora.use_dora"),
        ("  max_new_tokens: 16", "  max_new_tokens: 16\n  temperature: -1", "study.yaml:15:3: evaluation.temperature: "),
        ("  max_new_tokens: 16", "  max_new_tokens: 16\n  batch_size: 48\n  floor_batch_size: 48", "study.yaml:16:3: evaluation.floor_batch_size: "),
        ("alpha: 0.05", "alpha: 1", "study.yaml:16:3: analysis.alpha: expected a fraction"),
        ("alpha: 0.05", "alpha: 5e-324", "study.yaml:16:3: analysis.alpha: expected a fraction"),
        ("alpha: 0.05", "margin_points: 0", "study.yaml:16:3: analysis.margin_points: expected points above 0"),
        ("  name: arithmetic", "  name: arithmetic\n  template: 'Q'", "study.yaml:5:3: task.template: expected {question}"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_line_column_and_remedy(
    text: str, old: str, new: str, said: str
) -> None:
    assert refused(changed(text, old, new)).startswith(said)


def test_an_attack_that_an_arm_accepts_is_told_with_the_nearest_name(text: str) -> None:
    arms = "[random, {name: historical, accept: [run-in]}]"
    assert refused(changed(text, "[correctness, random]", arms)).endswith(
        "found 'run-in'. Did you mean 'run-on'?"
    )
    accepted = parse_plan(text.replace("[correctness, random]", arms.replace("in]", "on]")), "x")
    assert accepted.arms[1].accept == ("run-on",)
    assert parse_plan(dump_plan(accepted), "x") == accepted


def test_a_group_of_one_is_refused(text: str) -> None:
    message = refused(with_grpo(text, "num_generations: 1"))
    assert message.startswith(
        "study.yaml:12:3: grpo.num_generations: expected a group of 2 or more, found 1"
    )


@pytest.mark.parametrize(
    ("lines", "key", "nearest"),
    [
        # 6 completions in groups of 8: 8 per device.
        (("per_device_train_batch_size: 6",), "per_device_train_batch_size", 8),
        # 5 x 3 = 15 in groups of 4: the nearest batch size b with 3 b a multiple of 4 is 4.
        (("num_generations: 4", "per_device_train_batch_size: 5", "gradient_accumulation_steps: 3"), "per_device_train_batch_size", 4),
        # 3 x 2 = 6 in groups of 4: b must be even; of 2 and 4, either is one away (rounding halves to even).
        (("num_generations: 4", "per_device_train_batch_size: 3", "gradient_accumulation_steps: 2"), "per_device_train_batch_size", 4),
        (("per_device_train_batch_size: 1",), "per_device_train_batch_size", 8),
        # The batch must be a multiple of 8 and of 12, so of 24.
        (("per_device_train_batch_size: 12", "generation_batch_size: 40"), "generation_batch_size", 48),
    ],
)  # fmt: skip
def test_a_batch_that_is_not_a_multiple_of_the_group_names_the_nearest_legal_value(
    text: str, lines: tuple[str, ...], key: str, nearest: int
) -> None:
    message = refused(with_grpo(text, *lines))
    assert f"grpo.{key}: expected a generation batch" in message
    assert message.endswith(f"Nearest: {key}={nearest}.")
    mended = [f"{key}: {nearest}" if line.startswith(key) else line for line in lines]
    parse_plan(with_grpo(text, *mended), "study.yaml")


@pytest.mark.parametrize(
    ("lines", "asked", "nearest"),
    [
        # One generation batch serves 4 optimizer steps.
        (("steps_per_generation: 4",), 6, "4 or 8"),
        (("steps_per_generation: 4",), 1, "4 or 8"),
        # 2 iterations over it: 8 steps; with 2 accumulated, 4.
        (("steps_per_generation: 4", "num_iterations: 2"), 12, "8 or 16"),
        (("steps_per_generation: 4", "num_iterations: 2", "gradient_accumulation_steps: 2"), 6, "4 or 8"),
        # 3 iterations over 2 slices, 3 accumulated: 2 steps.
        (("steps_per_generation: 2", "num_iterations: 3", "gradient_accumulation_steps: 3"), 3, "2 or 4"),
    ],
)  # fmt: skip
def test_a_checkpoint_off_the_generation_boundary_names_the_nearest(
    text: str, lines: tuple[str, ...], asked: int, nearest: str
) -> None:
    message = refused(with_grpo(text, *lines, f"save_steps: {asked}"))
    assert "grpo.save_steps: expected a multiple of" in message
    assert message.endswith(f"Nearest: {nearest}.")
    for steps in nearest.split(" or "):
        plan = parse_plan(with_grpo(text, *lines, f"save_steps: {steps}"), "study.yaml")
        assert plan.grpo["save_steps"] == int(steps)
    boundary = int(nearest.split(" or ")[0]) if asked > 1 else 4
    default = parse_plan(with_grpo(text, *lines), "study.yaml").grpo["save_steps"]
    assert default % boundary == 0


@pytest.mark.parametrize("value", ["0", "-1", "0.5", "7.0"])
def test_a_checkpoint_interval_that_is_no_whole_number_of_steps_is_refused(
    text: str, value: str
) -> None:
    assert "grpo.save_steps: expected a multiple of 1" in refused(
        with_grpo(text, f"save_steps: {value}")
    )


@pytest.mark.parametrize(
    "key",
    ["per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation", "generation_batch_size", "num_iterations"],
)  # fmt: skip
@pytest.mark.parametrize("value", [0, -8])
def test_a_count_below_one_is_refused_and_not_a_division_by_zero(
    text: str, key: str, value: int
) -> None:
    message = refused(with_grpo(text, f"{key}: {value}"))
    assert message.startswith(
        f"study.yaml:12:3: grpo.{key}: expected a number from 1 to 10,000,000, found {value}"
    )


@pytest.mark.parametrize("key", sorted(MANAGED))
def test_a_key_that_ahalab_manages_is_refused_with_the_reason(text: str, key: str) -> None:
    message = refused(with_grpo(text, f"{key}: 1"))
    assert message.startswith(f"study.yaml:12:3: grpo.{key}: not a plan's to set: {MANAGED[key]}")


@pytest.mark.parametrize(
    "name", ["CON", "con", "nul.txt", "com1", "a/b", "..", ".hidden", "a b", "A", "-x", "''", "a" * 65, "a" * 300, "naïve", '"a\\nb"']
)  # fmt: skip
def test_a_name_that_makes_no_folder_is_refused_for_studies_and_arms(text: str, name: str) -> None:
    message = refused(changed(text, "name: demo", f"name: {name}"))
    assert message.startswith("study.yaml:1:1: name: expected a name of 1 to 64 characters")
    assert len(message) < 300
    arm = changed(
        text, "[correctness, random]", f"[random, {{name: {name}, components: {{format: 1}}}}]"
    )
    assert refused(arm).startswith("study.yaml:7:1: arms: expected a name of 1 to 64 characters")


@pytest.mark.parametrize("name", ["a", "a" * 64, "gsm8k-qwen2.5_0.5b", "console", "0"])
def test_a_plain_name_is_taken(text: str, name: str) -> None:
    assert parse_plan(changed(text, "name: demo", f"name: '{name}'"), "p").name == name


@pytest.mark.parametrize("spelling", ["1e-5", "1.0e-5", "0.00001", "1E-5"])
def test_a_number_in_exponent_form_is_a_number(text: str, spelling: str) -> None:
    assert (
        parse_plan(with_grpo(text, f"learning_rate: {spelling}"), "p").grpo["learning_rate"] == 1e-5
    )


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "y", "n"])
def test_yaml_1_2_words_are_text(text: str, word: str) -> None:
    assert parse_plan(changed(text, "name: demo", f"name: {word}"), "p").name == word


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (".nan", "expected a finite number, found "),
        (".inf", "expected a finite number, found "),
        ("-.inf", "expected a finite number, found "),
        ("1e999", "expected a finite number, found "),
        ("1e101", "expected a number up to 1e+100, found 1e+101."),
    ],
)
@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("max_steps: 20", "max_steps: 20\n  learning_rate: {}", "grpo.learning_rate"),
        ("{r: 4}", "{{r: 4, alpha_pattern: {{q_proj: [{}]}}}}", "lora.alpha_pattern.q_proj.0"),
        ("alpha: 0.05", "margin_points: {}", "analysis.margin_points"),
        ("max_new_tokens: 16", "max_new_tokens: 16\n  temperature: {}", "evaluation.temperature"),
        ("[correctness, random]", "[random, {{name: x, components: {{format: {}}}}}]", "arms.1.components.format"),
    ],
)  # fmt: skip
def test_a_number_that_no_record_holds_is_refused_wherever_it_stands(
    text: str, old: str, new: str, key: str, number: str, told: str
) -> None:
    assert f": {key}: {told}" in refused(changed(text, old, new.format(number)))


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**400], ids=["most", "least", "digits"])
@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("max_steps: 20", "max_steps: 20\n  per_device_train_batch_size: {}", "grpo.per_device_train_batch_size"),
        ("{r: 4}", "{{r: {}}}", "lora.r"),
        ("alpha: 0.05", "pass_at: [{}]", "analysis.pass_at.0"),
    ],
)  # fmt: skip
def test_a_whole_number_beyond_64_bits_is_refused_and_not_divided(
    text: str, old: str, new: str, key: str, number: int
) -> None:
    digits = len(str(abs(number)))
    said = f": {key}: expected a whole number of 64 bits, found one of {digits} digits"
    assert said in refused(changed(text, old, new.format(number)))


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch /tmp/ahalab-was-here']",
        "!!python/name:os.system x",
        "!!set {a, b}",
        "!!binary aGk=",
        "!!omap [a: 1]",
        "!custom x",
        "! x",
        "!!int ''",
        "!!float ''",
        "!!bool x",
        "!!str 5",
        "!<tag:yaml.org,2002:int> _",
    ],
)
@pytest.mark.parametrize(
    ("old", "new"), [("name: demo", "name: {}"), ("{r: 4}", "{{alpha_pattern: {{a: {}}}}}")]
)
def test_a_tag_is_refused_before_anything_is_built(
    text: str, value: str, old: str, new: str
) -> None:
    told = refused(changed(text, old, new.format(value)))
    assert "expected no anchor, no alias and no tag, found " in told
    assert not Path("/tmp/ahalab-was-here").exists()  # noqa: S108


@pytest.mark.parametrize("value", ["2020-01-01", "2020-01-01 10:00:00", "2020-99-99"])
@pytest.mark.parametrize(
    ("old", "new"), [("name: demo", "name: {}"), ("{r: 4}", "{{alpha_pattern: {{a: {}}}}}")]
)
def test_a_date_is_refused(text: str, value: str, old: str, new: str) -> None:
    told = refused(changed(text, old, new.format(value)))
    assert "expected text, a number, a list or a mapping, found 'timestamp'" in told


@pytest.mark.parametrize("key", ["1", "~", "true", "? [a]", "? {a: 1}", '"a\\nb"', '"\\e[31m"'])
def test_a_key_that_is_not_plain_text_is_refused(text: str, key: str) -> None:
    nested = changed(text, "lora: {r: 4}", f"lora:\n  alpha_pattern:\n    {key}\n    : 2")
    for body in (nested, f"{key}\n: 2\n{text}"):
        message = refused(body)
        assert message.isprintable()
        assert "expected a key of plain text" in message or "expected YAML 1.2" in message


def test_half_a_character_is_refused_because_no_file_could_hold_it(text: str) -> None:
    message = refused(
        changed(text, "  name: arithmetic", '  name: arithmetic\n  system: "a\\ud800"')
    )
    assert message.startswith("study.yaml:5:11: expected text, found half of a character")


@pytest.mark.parametrize(
    "system", ["\x85", "a\u2028b", "\u2029", "\ufeff", "\x00\x1b[31m", "\U0001f600 é", "a\n b\n", "\t", "x " * 99]
)  # fmt: skip
def test_awkward_text_survives_the_dump(plan: Plan, system: str, tmp_path: Path) -> None:
    varied = replace(plan, task=replace(plan.task, system=system))
    path = tmp_path / "study.yaml"
    path.write_text(dump_plan(varied), encoding="utf-8")
    assert load_plan(path) == varied


def test_an_alias_bomb_costs_neither_time_nor_memory(text: str) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)
    ]  # 9**30 nodes
    bomb = "lora:\n  alpha_pattern:\n" + "".join(f"    {level}\n" for level in levels)
    started = time.monotonic()
    message = refused(changed(text, "lora: {r: 4}\n", bomb))
    assert "expected no anchor, no alias and no tag, found 'a0'" in message
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("lora", ["&a {alpha_pattern: *a}", "&a {r: 4}", "&a [&a 1]", "*a"])
def test_an_anchor_is_refused_where_it_stands_without_a_warning(
    text: str, lora: str, recwarn: pytest.WarningsRecorder
) -> None:
    message = refused(changed(text, "lora: {r: 4}", f"lora: {lora}"))
    assert message.startswith("study.yaml:12:7: expected no anchor, no alias and no tag, found 'a'")
    assert not recwarn.list


def test_a_merge_key_is_refused(text: str) -> None:
    merged = changed(text, "lora: {r: 4}", "lora: {r: 4}\ngrpo2: {<<: {r: 4}}")
    assert refused(merged).startswith("study.yaml:13:9: expected a key of plain text, found '<<'")


@pytest.mark.parametrize(
    "body",
    ["", "- a", "text", "1", "null", "a: [", "a: b: c", "\t- x", "name: demo\n---\nname: two", "name: \x01", "name: " + "1" * 5000, "%YAML 9.9\n---\na: 1", "*a", "[" * 5_000, "{" * 500],
)  # fmt: skip
def test_what_is_no_mapping_of_plain_yaml_is_refused(body: str) -> None:
    refused(body)


def test_a_plan_that_is_missing_or_a_folder_or_not_utf_8_or_huge_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    expected = "expected a study plan, or a folder of results that holds one, found: "
    with pytest.raises(PlanError, match=rf"^{path}: {expected}No such file.*ahalab init"):
        load_plan(path)
    with pytest.raises(PlanError, match=f"{expected}Is a directory"):
        load_plan(tmp_path)
    path.write_bytes(b"name: d\xe9mo\n")
    with pytest.raises(PlanError, match="expected UTF-8 text, found a bad byte at 7"):
        load_plan(path)
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(PlanError, match="expected a plan of at most 64 kB, found 1048577 bytes"):
        load_plan(path)


def test_resolving_a_resolved_plan_changes_nothing(plan: Plan) -> None:
    assert resolve(plan) == plan
    assert digest(resolve(plan)) == digest(plan)


def test_the_order_of_keys_and_the_spelling_of_numbers_do_not_change_the_digest(text: str) -> None:
    first = with_grpo(text, "beta: 0", "temperature: 1", "logging_dir: x").replace(
        "logging_dir: x", "top_k: 5"
    )
    second = with_grpo(text, "top_k: 5", "temperature: 1.0", "beta: 0.0")
    lines = second.splitlines(keepends=True)
    second = "".join(["schema: ahalab.plan/1\n", *lines[1:9], *lines[9:], lines[0]])
    assert digest(parse_plan(first, "a")) == digest(parse_plan(second, "b"))
    weights = (
        "{name: x, components: {format: 1, correct_strict: 0.5}}",
        "{name: x, components: {correct_strict: 0.5, format: 1.0}}",
    )
    ours, theirs = (
        parse_plan(changed(text, "[correctness, random]", f"[random, {arm}]"), "p")
        for arm in weights
    )
    assert digest(ours) == digest(theirs)


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(-1e100, 1e100)
    | st.sampled_from([1e-05, 0.1, 1e22, -0.0, "1e-5", "no", "null", "~", "", " x ", "0x10", "2020-01-01", "a: b", "- a", "#", "*a", "&a", "!x", "'", '"'])
    | st.text(max_size=12)
)  # fmt: skip
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.x-", min_size=1, max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    system=st.none() | st.text(max_size=150),
    rate=st.floats(0, 1),
    patterns=st.dictionaries(st.text("abc.x-", min_size=1, max_size=4), TREES, max_size=3),
    modules=st.none() | st.lists(st.text(max_size=5), max_size=3),
    alpha=st.floats(1e-9, 0.5),
)
def test_a_dumped_plan_reads_back_to_the_same_digest(
    plan: Plan,
    system: str | None,
    rate: float,
    patterns: dict[str, Any],
    modules: list[str] | None,
    alpha: float,
) -> None:
    varied = resolve(
        replace(
            plan,
            task=replace(plan.task, system=system, template=f"{system}{{question}}"),
            grpo={**plan.grpo, "learning_rate": rate},
            lora={**plan.lora, "alpha_pattern": patterns, "target_modules": modules},
            analysis=replace(plan.analysis, alpha=alpha),
        )
    )
    dumped = dump_plan(varied)
    read = parse_plan(dumped, "study.yaml")
    assert digest(read) == digest(varied)
    assert read == varied
    assert dump_plan(read) == dumped
    assert differing_keys(read, varied) == []
    assert dumped.startswith(f"# Frozen by ahalab. Digest: {digest(varied)}\n")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("seeds: [0, 1]", "seeds: [0]", ["seeds: (0, 1) here, (0,) there"]),
        ("alpha: 0.05", "alpha: 0.01", ["analysis.alpha: 0.05 here, 0.01 there"]),
        ("max_steps: 20", "max_steps: 20\n  beta: 0.04", ["grpo.beta: 0.0 here, 0.04 there", "grpo.use_bias_correction_kl: absent here, True there"]),
        ("max_steps: 20", "max_steps: 20\n  seed_x: 1", None),
        ("max_steps: 20", "max_steps: 20\n  epsilon_high: null", ["grpo.epsilon_high: absent here, None there"]),
        ("{r: 4}", "{r: 4, rank_pattern: {}}", ["lora.rank_pattern: absent here, {} there"]),
        ("{r: 4}", "{r: 8, lora_dropout: 0.1}", ["lora.lora_dropout: 0.0 here, 0.1 there", "lora.r: 4 here, 8 there"]),
        ("name: demo", "name: other", ["name: 'demo' here, 'other' there"]),
        ("max_steps: 20", "max_steps: 20\n  warmup_steps: 0.0", ["grpo.warmup_steps: 0 here, 0.0 there"]),
    ],
)  # fmt: skip
def test_two_plans_of_different_digests_differ_in_keys_that_are_named(
    text: str, plan: Plan, old: str, new: str, named: list[str] | None
) -> None:
    if named is None:
        refused(changed(text, old, new))
        return
    other = parse_plan(changed(text, old, new), "p")
    assert digest(other) != digest(plan)
    found = differing_keys(plan, other)
    assert [line.replace("[0, 1]", "(0, 1)").replace("[0]", "(0,)") for line in found] == named


def test_an_optimizer_step_that_spans_generation_batches_is_refused(text: str) -> None:
    lines = ("steps_per_generation: 2", "gradient_accumulation_steps: 4")
    message = refused(with_grpo(text, *lines))
    assert "grpo.gradient_accumulation_steps: expected a divisor of" in message
    assert message.endswith("found 4. Nearest: 2.")


def test_an_answer_format_that_no_scorer_knows_is_refused(text: str) -> None:
    message = refused(text + "\nanswer_format: hashtags\n")
    assert "answer_format: " in message
    assert "hashtags" in message


def test_the_older_spelling_of_scaled_rewards_is_the_same_plan(text: str) -> None:
    today = parse_plan(with_grpo(text, "scale_rewards: group"), "study.yaml")
    older = parse_plan(with_grpo(text, "scale_rewards: true"), "study.yaml")
    assert digest(older) == digest(today)
    unscaled = parse_plan(with_grpo(text, "scale_rewards: false"), "study.yaml")
    assert unscaled.grpo["scale_rewards"] == "none"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("max_prompt_length: 512", "grpo.max_prompt_length: a field of older versions"),
        ("warmup_ratio: 0.1", "write the fraction as warmup_steps"),
        ("use_liger_loss: true", "use_liger_kernel"),
    ],
)
def test_a_field_that_trl_dropped_is_refused_with_what_to_write_instead(
    text: str, line: str, said: str
) -> None:
    assert said in refused(with_grpo(text, line))


def test_a_default_of_the_kl_term_that_changed_is_written_out_where_there_is_one(
    text: str,
) -> None:
    plan = parse_plan(with_grpo(text, "beta: 0.04"), "study.yaml")
    assert plan.grpo["use_bias_correction_kl"] is True
    assert "use_bias_correction_kl" not in parse_plan(text, "study.yaml").grpo


@pytest.mark.parametrize(
    ("kwargs", "told"),
    [
        ("{tokenize: false}", "grpo.chat_template_kwargs.tokenize: expected names of the model's"),
        ("{a b: 1}", "grpo.chat_template_kwargs: expected a mapping of names to values"),
        ("'{}'", "grpo.chat_template_kwargs: expected a mapping of names to values"),
    ],
)
def test_the_chat_template_is_handed_only_what_is_its_own(
    text: str, kwargs: str, told: str
) -> None:
    line = f"max_steps: 20\n  chat_template_kwargs: {kwargs}"
    assert told in refused(changed(text, "max_steps: 20", line))
