"""What a response must be to meet its asked format, decided case by case before it was run."""

from __future__ import annotations

import pytest

from ahalab.scoring.format import format_fault

WORD = r"pattern:Answer: (\S+)"
MET = [
    ("answer_tag", "<think>a</think><answer>18</answer>"),
    ("answer_tag", "<think>a</think>\n\n<answer>18</answer>\n"),
    ("answer_tag", "<answer>18</answer>"),
    ("answer_tag", "a</think><answer>18</answer>"),
    ("answer_tag", "<think>a</think><answer>18</answer><|endoftext|>"),
    ("answer_tag", "<think>a</think>\t<answer>\n18\n</answer>  \n"),
    ("hashes", "3*6=18\n#### 18"),
    ("hashes", "#### 18"),
    ("hashes", "3*6=18\n#### 18\n"),
    ("hashes", "####18"),
    ("hashes", "#### -18"),
    ("hashes", "#### 1,234.50"),
    ("hashes", "#### $18"),
    ("hashes", "<think>a</think>\n#### 18"),
    ("hashes", "#### 3/4"),
    ("hashes", "#### 25%"),
    ("hashes", "#### 18<|im_end|>"),
    ("hashes", "#### 18   "),
    ("boxed", "So \\boxed{18}"),
    ("boxed", "So $\\boxed{18}$."),
    ("boxed", "\\[\\boxed{18}\\]"),
    ("boxed", "$$\\boxed{\\frac{1}{2}}$$"),
    ("boxed", "<think>a</think>\\boxed{18}"),
    ("boxed", "**\\boxed{18}**"),
    ("boxed", "\\boxed{18}<|im_end|>"),
    (WORD, "so\nAnswer: 18"),
]
NOT_MET = [
    ("answer_tag", "<think>a</think><answer>18</answer> done"),
    ("answer_tag", "Sure. <think>a</think><answer>18</answer>"),
    ("answer_tag", "<think>a</think> so <answer>18</answer>"),
    ("answer_tag", "<think> </think><answer>18</answer>"),
    ("answer_tag", "<think>a</think><answer> </answer>"),
    ("answer_tag", "<think>a</think><answer>18</answer><answer>18</answer>"),
    ("answer_tag", "<think>a<think>b</think></think><answer>18</answer>"),
    ("answer_tag", "<think>a</think></think><answer>18</answer>"),
    ("answer_tag", "<think>a</think>"),
    ("answer_tag", ""),
    ("answer_tag", "<think>a</think><answer>18"),
    ("answer_tag", "<think>a</think>18</answer>"),
    ("answer_tag", "<answer><think>a</think>18</answer>"),
    ("answer_tag", "<think>a</think><answer>18</answer></answer>"),
    ("answer_tag", "<think>a</think><answer>18</answer><think>b</think>"),
    ("answer_tag", "<THINK>a</THINK><ANSWER>18</ANSWER>"),
    ("answer_tag", "<think>a</think><answer>18</Answer>"),
    ("answer_tag", "<think>a</think><answer>...</answer>"),
    ("answer_tag", "<think>\u200b</think><answer>18</answer>"),
    ("answer_tag", "<think>a</think><answer>\u200b</answer>"),
    ("answer_tag", "</think><answer>18</answer>"),
    ("answer_tag", "<think>a</think><answer><answer>18</answer></answer>"),
    ("answer_tag", "< think>a</think><answer>18</answer>"),
    ("answer_tag", "<think>a</ think><answer>18</answer>"),
    ("answer_tag", "```\n<think>a</think><answer>18</answer>\n```"),
    ("answer_tag", "<think>a</think><answer>18</answer>."),
    ("answer_tag", "<think>a</think>,<answer>18</answer>"),
    ("answer_tag", "<think>a</think><answer/>"),
    ("answer_tag", "\uff1cthink\uff1ea\uff1c/think\uff1e\uff1canswer\uff1e18\uff1c/answer\uff1e"),
    ("answer_tag", "<think>a</think><answer>18 <answer>19</answer>"),
    ("answer_tag", "<think>a</think><answer>18</answer> <answer>"),
    ("hashes", "#### 18\nDone."),
    ("hashes", "#### eighteen"),
    ("hashes", "#### 18 apples"),
    ("hashes", "#### 18\n#### 18"),
    ("hashes", "#### "),
    ("hashes", "### 18"),
    ("hashes", "#### 18 or 20"),
    ("hashes", "<think>#### 18</think>"),
    ("hashes", "<think>a\n#### 18"),
    ("hashes", "#### 18 #### 20"),
    ("hashes", "#### 18\n\nQuestion: Tom?\n#### 7"),
    ("hashes", "#### \\boxed{18}"),
    ("hashes", "#### **18**"),
    ("hashes", "####\n18"),
    ("hashes", "#### ---"),
    ("hashes", "#### 1..2"),
    ("boxed", "\\boxed{18}\n\\boxed{18}"),
    ("boxed", "\\boxed{}"),
    ("boxed", "\\boxed{ }"),
    ("boxed", "\\boxed{18"),
    ("boxed", "\\boxed{18} Hope this helps!"),
    ("boxed", "\\boxed{\\boxed{18}}"),
    ("boxed", "<think>\\boxed{18}</think>"),
    ("boxed", "The answer is 18."),
    ("boxed", "\\boxed{?}"),
    ("boxed", "\\text{boxed}{18}"),
    ("boxed", "\\boxed{\\text{}}"),
    ("boxed", "\\boxed{{}}"),
    ("boxed", "boxed{18}"),
    ("boxed", "\\boxed{18}\n\nQuestion: more"),
    (WORD, "Answer: 18 ok"),
    (WORD, "Answer: 18\nAnswer: 18"),
    (WORD, "answer: 18"),
    (WORD, "Answer: "),
    (WORD, "Answer: 18 or 20"),
]


@pytest.mark.parametrize(("answer_format", "response"), MET)
def test_one_whole_statement_with_nothing_around_it_meets_the_format(
    answer_format: str, response: str
) -> None:
    assert format_fault(response, "eos", answer_format) is None
    assert format_fault(response, "length", answer_format) == "truncated"


@pytest.mark.parametrize(("answer_format", "response"), NOT_MET)
def test_anything_else_does_not(answer_format: str, response: str) -> None:
    assert format_fault(response, "eos", answer_format) is not None


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ("Sure. <think>a</think><answer>18</answer>", "text before the blocks"),
        ("<think>a</think> so <answer>18</answer>", "text between the blocks"),
        ("<think>a</think><answer>18</answer> done", "text after the statement"),
        ("<think>a</ think><answer>18</answer>", "misplaced tags"),
        ("<THINK>a</THINK><answer>18</answer>", "misplaced tags"),
        ("<think>a</think><ANSWER>18</ANSWER>", "no statement"),
        ("<think>a</think><answer>\u200b</answer>", "empty"),
    ],
)
def test_a_fault_is_named(response: str, fault: str) -> None:
    assert format_fault(response, "eos", "answer_tag") == fault
