"""Word n-grams that evaluation questions share with training questions: measured, and told.

Equal questions are refused (`selection.py`). Shared word sequences are no fault by themselves:
questions of one template share them, so a study says how many there are and shows the longest.

Source:
    Thirteen words, with eight as the least, are those of Brown et al. 2020 (GPT-3, appendix C),
    who choose n for a whole benchmark from its short examples. Here it is chosen by question:
    one of 8 to 12 words counts as a single n-gram of its own length, a shorter one is not
    measured. The share of a question's n-grams is Chowdhery et al. 2022's (PaLM, section 8).
    Measured: of GSM8K's 1,319 test questions 3 share 13 words with a training question, and 79
    share 8; of SVAMP, cut in 700 and 300, 106 share 13, and of the embedded arithmetic none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ahalab.records.prompt import Overlap, Prompt, SharedWords
from ahalab.tasks.text import normalised

WORDS = 13
LEAST_WORDS = 8
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
    lengths = {length for words in asked if (length := _length(words))}
    first: dict[tuple[str, ...], int] = {}  # n-gram -> the first training question with it
    for at, prompt in enumerate(training):
        words = normalised(prompt.question).split()
        for length in lengths:
            for gram in _grams(words, length):
                first.setdefault(gram, at)
    shared = []
    for position, words in enumerate(asked):
        grams = _grams(words, _length(words))
        known = [gram for gram in grams if gram in first]
        if known:
            # Of several training questions, the one that most of the n-grams stand in first.
            (source, _), *_ = Counter(first[gram] for gram in known).most_common(1)
            words_shared = next(gram for gram in known if first[gram] == source)
            shared.append((len(known) / len(grams), -position, source, words_shared))
    shared.sort(reverse=True)
    return Overlap(
        words=WORDS,
        least_words=LEAST_WORDS,
        questions=sum(_length(words) > 0 for words in asked),
        sharing=len(shared),
        mostly=sum(fraction >= MOST for fraction, *_ in shared),
        examples=tuple(
            SharedWords(
                prompt_id=evaluation[-negative].prompt_id,
                train_prompt_id=training[source].prompt_id,
                fraction=round(fraction, 4),
                words=" ".join(gram),
            )
            for fraction, negative, source, gram in shared[:EXAMPLES]
        ),
    )


def _length(words: Sequence[str]) -> int:
    """Return the n of a question's n-grams; 0: it is too short to say anything."""
    return min(WORDS, len(words)) if len(words) >= LEAST_WORDS else 0


def _grams(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    if length == 0:
        return []
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
