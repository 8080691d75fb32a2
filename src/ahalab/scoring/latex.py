r"""Simple LaTeX made plain: `\dfrac{9}{7}` is `9/7`, `\text{13}` is `13`, `12{,}400` is `12,400`.

Only what carries no value is dropped. What is left of a command that is not known here (`\sqrt`,
`\pi`) keeps its backslash, so that a text which is more than a number never reads as one.
"""

from __future__ import annotations

import re

MAX_LATEX = 2_000
"""Characters of one LaTeX answer; a longer one is beyond the bounds."""

_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|big|Big|bigg|Bigg|quad|qquad)(?![A-Za-z])"
    r"|(?<!\\)\\[!,;: ]|\$\$|\\[()\[\]](?!\w*\\\\)"
)
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mbox|boldsymbol|bm|emph|textnormal"
    r"|operatorname|boxed|fbox|underline|(?:text)?color\s*\{\w{1,20}\})\s*\{([^{}]*)\}"
)
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
_COLOR = re.compile(r"\\color\s*\{\w{1,20}\}|\\color\s*\w")
_BRACED_NUMBER = re.compile(r"(?<![\w}^_\]])\{(-?\d[\d.,]*)\}")
_PLAIN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_RAISED = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_PLAIN_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_ROOT_SIGN = re.compile(r"√\s?(\d+|[A-Za-z])")
_UNICODE = str.maketrans({
    "π": "\\pi ", "√": "\\sqrt", "∞": "\\infty ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ",
    "∪": "\\cup ", "∩": "\\cap ", "∅": "\\emptyset ", "±": "\\pm ", "∈": "\\in ", "≈": "\\approx ",
    "θ": "\\theta ", "α": "\\alpha ", "β": "\\beta ", "∠": "\\angle ", "ℝ": "\\mathbb{R}",
})  # fmt: skip
_POWER_BRACES = re.compile(r"\^\s*\{\s*([-+]?\w+)\s*\}")
_UNIT_POWER = re.compile(r"(?<=[A-Za-z])\s?\^\s?\{?[23]\}?$")
_DEGREES = re.compile(r"\^\s?\{?\\circ\}?")
_ROOT_OF_BRACKETS = re.compile(r"\\sqrt\s*\(([^()]*)\)")  # else a parser drops the root
_PLAIN = (
    ("{,}", ","),
    ("\\$", "$"),
    ("\\%", "%"),
    ("\\times", "×"),
    ("\\cdot", "*"),
    ("\\div", "÷"),
    ("\\-", ""),
    ("~", " "),
)
_MATH_SIGN = re.compile("[π√∞≤≥≠∪∩∅±∈≈θαβ∠ℝ⁰¹²³⁴⁵⁶⁷⁸⁹]")
_FORMATTING = "*_`$ \t\r\n"


def plain(text: str) -> str:
    """Make simple LaTeX plain and strip Markdown and mathematics delimiters around it.

    Args:
        text: The content of an answer statement, at most MAX_LATEX characters.

    Returns:
        The text; unchanged but for its surroundings when there is no LaTeX in it.
    """
    if "\\" not in text and "{" not in text and (text.isascii() or not _MATH_SIGN.search(text)):
        return text.strip(_FORMATTING)
    text = _ascii(text)
    for command, replacement in _PLAIN:
        text = text.replace(command, replacement)
    text = _DEGREES.sub("°", _DROPPED.sub("", text))
    text = _WRAPPER.sub(r" \1", _WRAPPER.sub(r" \1", text))  # twice: one in another
    text = _POWER_BRACES.sub(r"^\1", _BRACED_NUMBER.sub(r"\1", text))
    text = _FRACTION.sub(_slash, text)
    text = _UNIT_POWER.sub("", text.strip(_FORMATTING))
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    return text.strip(_FORMATTING)


def bare_latex(text: str) -> str:
    """Drop what carries no value and keep the rest as LaTeX, for a parser of LaTeX.

    Args:
        text: The content of an answer statement, at most MAX_LATEX characters.

    Returns:
        The text without delimiters, sizing commands, currency, degrees and text wrappers.
    """
    text = _ascii(text).replace("{,}", "").replace("\\$", "").strip(_FORMATTING)
    text = _ROOT_OF_BRACKETS.sub(r"\\sqrt{\1}", text)
    text = _WRAPPER.sub(r" \1", _DROPPED.sub("", _DEGREES.sub("", text)))
    return text.strip(_FORMATTING).removesuffix(".")


def _ascii(text: str) -> str:
    """Write the signs of Unicode mathematics as LaTeX, and drop colours."""
    if "color" in text:
        text = _COLOR.sub("", _WRAPPER.sub(r" \1", text)) if "\\" in text else text
    if text.isascii():
        return text
    text = _ROOT_SIGN.sub(r"\\sqrt{\1}", text).translate(_UNICODE)
    return _RAISED.sub(lambda power: f"^{{{power.group().translate(_PLAIN_RAISED)}}}", text)


def _slash(match: re.Match[str]) -> str:
    above = match[1] if match[1] is not None else match[2]
    below = match[3] if match[3] is not None else match[4]
    above, below = above.strip().replace(",", ""), below.strip().replace(",", "")
    before = match.string[match.start() - 1] if match.start() else ""
    mixed = " " if before.isdigit() else ""  # 2\frac{1}{2} is two and a half
    if not (_PLAIN_NUMBER.fullmatch(above) and _PLAIN_NUMBER.fullmatch(below)):
        return f"{mixed}\\frac{{{above}}}{{{below}}}"
    if below.startswith("-"):
        below = below[1:]
        above = above[1:] if above.startswith("-") else f"-{above}"
    return f"{mixed}{above}/{below}"
