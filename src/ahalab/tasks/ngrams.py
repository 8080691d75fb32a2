"""Word n-grams that evaluation questions share with training questions: measured, and told.

Equal questions are refused (`selection.py`). Shared word sequences are no fault by themselves:
questions of one template share them, so a study says how many there are and shows the longest.

Source:
    Thirteen words, with eight as the least, are those of Brown et al. 2020 (GPT-3, appendix C),
    who choose n for a whole benchmark from its short examples. Here it is chosen by question:
    one of 8 to 12 words counts as a single n-gram of its own length, a shorter one is not
    measured. As there, an n-gram of more than ten training texts is boilerplate, such as a task's
    instructions, and left out. The share of a question's n-grams is Chowdhery et al. 2022's
    (PaLM, section 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from ahalab.records.prompt import Overlap, Prompt, SharedWords
from ahalab.tasks.text import normalised

Gram = tuple[str, ...]  # words in a row

WORDS = 13
LEAST_WORDS = 8
MOST_QUESTIONS = 10  # for training; an n-gram of more of them is boilerplate
MOST = 0.5  # of a question's n-grams
EXAMPLES = 5


def measure_overlap(training: Sequence[Prompt], evaluation: Sequence[Prompt]) -> Overlap:
    """Count the evaluation questions that share n-grams with training questions.

    Args:
        training: Shape (M,).
        evaluation: Shape (N,).

    Returns:
        Counts of questions, and those with the largest share as examples.
    """
    asked = [normalised(prompt.question).split() for prompt in evaluation]
    first, boilerplate = _index(training, {_length(words) for words in asked} - {0})
    measured = 0
    shared = []
    for position, words in enumerate(asked):
        grams = [gram for gram in _grams(words, _length(words)) if gram not in boilerplate]
        measured += bool(grams)
        known = [gram for gram in grams if gram in first]
        if known:
            # Of several training questions, the one that most of the n-grams stand in first.
            (source, _), *_ = Counter(first[gram] for gram in known).most_common(1)
            gram = next(gram for gram in known if first[gram] == source)
            shared.append((len(known) / len(grams), -position, source, " ".join(gram)))
    shared.sort(reverse=True)
    return Overlap(
        words=WORDS,
        least_words=LEAST_WORDS,
        most_questions=MOST_QUESTIONS,
        questions=measured,
        sharing=len(shared),
        mostly=sum(fraction >= MOST for fraction, *_ in shared),
        examples=tuple(
            SharedWords(
                prompt_id=evaluation[-negative].prompt_id,
                train_prompt_id=training[source].prompt_id,
                fraction=round(fraction, 4),
                words=text,
            )
            for fraction, negative, source, text in shared[:EXAMPLES]
        ),
    )


def _index(training: Sequence[Prompt], lengths: Set[int]) -> tuple[dict[Gram, int], Set[Gram]]:
    """Return the first training question of every n-gram, and the n-grams of too many of them."""
    first: dict[Gram, int] = {}
    seen: Counter[Gram] = Counter()
    for at, prompt in enumerate(training):
        words = normalised(prompt.question).split()
        grams = {gram for length in lengths for gram in _grams(words, length)}
        seen.update(grams)
        for gram in grams:
            first.setdefault(gram, at)
    return first, {gram for gram, count in seen.items() if count > MOST_QUESTIONS}


def _length(words: Sequence[str]) -> int:
    """Return the n of a question's n-grams; 0: it is too short to say anything."""
    return min(WORDS, len(words)) if len(words) >= LEAST_WORDS else 0


def _grams(words: Sequence[str], length: int) -> list[Gram]:
    if length == 0:
        return []
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
