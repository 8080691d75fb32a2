# ruff: noqa: E501 (a table of refusals, a line each)
"""Templates that a plan lists for its base, and the built-in set where it lists none."""

from __future__ import annotations

import pytest

from ahalab.errors import PlanError
from ahalab.plan.load import differing_keys, dump_plan, parse_plan
from ahalab.plan.templates import asked_templates
from ahalab.records.base import digest, encode
from ahalab.records.plan import Plan, TemplateSpec

ANSWER = 'End with a line "#### N", where N is the answer.'


def with_templates(text: str, block: str) -> Plan:
    return parse_plan(
        text.replace("evaluation:\n", f"evaluation:\n  templates: {block}\n"), "p.yaml"
    )


def names(plan: Plan) -> list[str]:
    return [template.name for template in asked_templates(plan)]


def test_a_plan_that_lists_none_says_nothing_of_it(plan: Plan) -> None:
    assert b"templates" not in encode(plan)
    assert "templates" not in dump_plan(plan)


def test_a_list_reads_back_to_the_same_digest_in_whatever_order_it_is_written(text: str) -> None:
    one = with_templates(
        text, "{b: {template: 'Q {question}', system: Be brief.}, a: {template: '{question}!'}}"
    )
    other = with_templates(
        text, "{a: {template: '{question}!'}, b: {system: Be brief., template: 'Q {question}'}}"
    )
    assert digest(one) == digest(other) == digest(parse_plan(dump_plan(one), "p.yaml"))
    assert one.evaluation.templates == {
        "a": TemplateSpec(template="{question}!"),
        "b": TemplateSpec(template="Q {question}", system="Be brief."),
    }
    assert names(one) == ["plan", "a", "b"]


def test_a_plan_with_a_list_is_another_plan_and_the_key_is_named(text: str, plan: Plan) -> None:
    listing = with_templates(text, "{a: {template: '{question}!'}}")
    assert digest(listing) != digest(plan)
    told = differing_keys(listing, plan)
    assert "evaluation.templates.a.template: '{question}!' here, absent there" in told


def test_the_built_in_set_asks_with_and_without_steps_format_and_system_message(plan: Plan) -> None:
    # The plan's own is the bare question, which is therefore not asked twice.
    found = {t.name: (t.template, t.system) for t in asked_templates(plan)}
    system = "You are a helpful assistant."
    assert found == {
        "plan": ("{question}", None),
        "question_answer": ("Question: {question}\nAnswer:", None),
        "steps": ("{question}\nLet's think step by step.", None),
        "format": (f"{{question}}\n{ANSWER}", None),
        "steps_format": (f"{{question}}\nLet's think step by step. {ANSWER}", None),
        "system_question": ("{question}", system),
        "system_format": (f"{{question}}\n{ANSWER}", system),
    }


@pytest.mark.parametrize(
    ("answer_format", "told"),
    [("boxed", "\\boxed{}"), ("answer_tag", "<answer>"), ("pattern:([0-9]+)!", None)],
)
def test_the_instruction_is_that_of_the_plans_format(
    text: str, answer_format: str, told: str | None
) -> None:
    plan = parse_plan(f"{text}answer_format: '{answer_format}'\n", "p.yaml")
    found = {t.name: t.template for t in asked_templates(plan)}
    if told is None:  # of a pattern nobody could say how to ask for it
        assert list(found) == [
            "plan",
            "question_answer",
            "steps",
            "system_question",
            "system_steps",
        ]
    else:
        assert told in found["format"]
        assert told in found["steps_format"]


def test_a_plans_own_template_and_system_message_are_always_among_them(text: str) -> None:
    own = "  template: 'Solve: {question}'\n  system: You count.\n"
    plan = parse_plan(text.replace("  name: arithmetic\n", f"  name: arithmetic\n{own}"), "p.yaml")
    found = {t.name: (t.template, t.system) for t in asked_templates(plan)}
    assert found["plan"] == ("Solve: {question}", "You count.")
    assert found["question"] == ("{question}", None)
    assert found["system_question"] == ("{question}", "You count.")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{a: {template: no place}}", "evaluation.templates.a: expected {question} in the template, found none."),
        ("{}", "evaluation.templates: expected at least one template, found none."),
        ("{plan: {template: '{question}!'}}", "evaluation.templates.plan: expected a name of 1 to 32 characters"),
        ("{'a/b': {template: '{question}!'}}", "evaluation.templates.a/b: expected a name of 1 to 32 characters"),
        ("{'..': {template: '{question}!'}}", "expected a name of 1 to 32 characters"),
        ("{a: {template: '{question}'}}", "evaluation.templates.a: expected another template than that of task.template"),
        ("{a: {template: '{question}!'}, b: {template: '{question}!'}}", "evaluation.templates.b: expected another template than that of a."),
        ("{a: {template: '{question}!', sytem: x}}", "unknown key `sytem` in evaluation.templates. Did you mean `system`?"),
        ("{a: {system: x}}", "the key `template` is missing"),
        ("{a: '{question}!'}", "evaluation.templates"),
    ],
)  # fmt: skip
def test_a_malformed_list_is_refused_in_one_line_with_its_place(
    text: str, block: str, said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        with_templates(text, block)
    message = str(caught.value)
    assert said in message
    assert message.startswith("p.yaml:14:")
    assert "\n" not in message
