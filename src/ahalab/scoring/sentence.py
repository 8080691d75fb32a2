"""Which number of a sentence is its value: not mere context, and after what concludes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ahalab.scoring.numbers import FoundNumber, in_expression

_CONCLUSION = re.compile(
    r"\b(?:so|thus|therefore|hence|i\.e\.|which (?:is|means|makes|gives|leaves)"
    r"|that (?:is|makes|gives|leaves)|total (?:of|is|was|comes to)|equals|now|we get|you get|namely"
    r"|(?<!is )(?<!are )(?<!was )(?<!by )(?<!after )(?<!for )(?<!of )(?<!from )(?<!without )"
    r"(?:giving|leaving|making|totall?ing|yielding)|(?<=, )(?:earning|saving"
    r"|bringing [^,.\d]{0,40} to))\b",
    re.IGNORECASE,
)
_ASIDE_CONCLUSION = re.compile(r"\b(?:which|that) \w+$", re.IGNORECASE)
_COMPARISON = re.compile(
    r"\s(?:times|percent|%)|(?:\s[a-z]+)?\s(?:more|less|fewer|\w{2,}er)\b", re.IGNORECASE
)
_GERUND = re.compile(r"[\s*]*(?!\w*thing\b)[A-Z]\w*ing\s")
_YIELDS = re.compile(r"\b(?:gives|yields|leaves|makes|is|results in|brings [^.\d]{0,30} to)\b")
_CONTEXT = re.compile(
    r"\b(?:(?:in|for|after|over|of|from|within|during|per|every|each|between|by|on|than|if|all|when"
    r"|with|step|day|week|month|year|hour)(?:\s(?:the|these|those|all|next|first|last|another|about"
    r"|her|his|their|its|other))?"
    r"|(?:the|these|those|both|his|her|their|its|my|our)(?:\s(?:other|same|original|initial))?"
    r"|(?:by|from|after|for|of|while|when|without|before) \w+ing(?: \w+)?)\s[$*`(]{0,3}$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"(?<!need)(?<!needs)(?<!has)(?<!have)(?<!had)(?<!able)(?<!going)(?<!wants)(?<!want) to [a-z]+"
    r"\s[$*`]{0,3}$"
)
_ALONGSIDE = re.compile(r"(?:\s[a-z-]+){0,3},?\s(?:and|plus|to)\s[$*`]{0,3}")
_SUBJECT = re.compile(
    r"\W*(?:(?:so|thus|therefore|hence|then|and|all|in total|altogether|together|finally)\W+){0,3}",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"\b(?:is|are|was|were|be|costs?|weighs?|totals?|makes?|equals?|gives?)"
    r"(?:\s(?:now|then|about|only|exactly|approximately|roughly|therefore|thus"
    r"|a total of))?\s[$*(`]{0,3}$"
)
_OPENING = re.compile(
    r"\s*(?:(?:after|with|in|for|on|if|when|since|because|by|at|given|out of|of|before|from"
    r"|once|while|to [a-z]+)\b|(?!\w*thing\b)\w{2,}ing\s).*?,\s",
    re.IGNORECASE,
)


def concludes(content: str) -> bool:
    """Say whether a sentence concludes with an equation ("4/5 of them, so ... = 160")."""
    cue = _CONCLUSION.search(content)
    return cue is not None and content.find("=", cue.end()) >= 0


def concluded(content: str, stated: Sequence[FoundNumber]) -> FoundNumber:
    """Choose the number that a sentence is about.

    Args:
        content: The sentence.
        stated: Its numbers that are not rejected, at least one, in order.

    Returns:
        The first number that is not mere context, after the last word of conclusion.
    """
    starts = [cue.end() for cue in _CONCLUSION.finditer(content) if cue.end() <= stated[-1].start]
    if _GERUND.match(content):
        starts += [cue.end() for cue in _YIELDS.finditer(content) if cue.end() <= stated[-1].start]
    opening = _OPENING.match(content)
    if opening is not None and opening.end() <= stated[-1].start:
        starts = [opening.end(), *(start for start in starts if start > opening.end())]
    for start in [*reversed(starts[-20:]), 0]:
        clause = [f for f in stated if f.start >= start]
        candidate = _main(content, clause, start)
        aside = start and _ASIDE_CONCLUSION.search(content, max(0, start - 14), start)
        if aside and clause != list(stated) and _COMPARISON.match(content, candidate.end):
            continue  # "18 apples, which is 3 more than before"
        if not in_expression(content, candidate):
            return candidate
    return stated[-1]


def _main(content: str, clause: Sequence[FoundNumber], start: int) -> FoundNumber:
    """Choose the number of a clause that is its value, not its context."""
    unbound = _unbound(content, clause)
    value = next(unbound, None)
    if value is None:  # "works for 8 hours": the first that does not open the clause
        opened = content[start : clause[0].start].strip(" *$`(,")
        return clause[1] if len(clause) > 1 and opened.count(" ") < 1 else clause[0]
    subject = _SUBJECT.match(content, start)
    if subject is None or subject.end() != value.start:
        return value
    for number in unbound:  # "5 pens and 3 pencils cost $18"
        if re.search("[,;]", content[value.end : number.start]):
            break
        linked = _LINKED.search(content, max(value.end, number.start - 32), number.start)
        if linked and not _COMPARISON.match(content, number.end):
            return number
    return value


def _unbound(content: str, clause: Sequence[FoundNumber]) -> Iterator[FoundNumber]:
    """Walk the numbers that are not mere context ("in 3 days", "of 3 pens and 4 books")."""
    before: FoundNumber | None = None
    bound = False
    for found in clause:
        near = max(0, found.start - 32)
        is_context = _CONTEXT.search(content, near, found.start) is not None
        if not is_context and before is not None:
            purpose = _PURPOSE.search(content, max(before.end, near), found.start)
            joined = bound and _ALONGSIDE.fullmatch(content, before.end, found.start)
            is_context = bool(purpose or joined)
        before, bound = found, is_context
        if not is_context:
            yield found
