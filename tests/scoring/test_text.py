from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ahalab.scoring.text import clean

VISIBLE = "ab 12.٣é１"
INVISIBLE = "\u200b\u202e\u00ad\ufeff"


@given(st.text(alphabet=VISIBLE + INVISIBLE, max_size=40), st.sampled_from([0, 4_094, 8_192]))
def test_every_position_of_the_cleaned_text_leads_back_to_the_character_it_came_from(
    tail: str, before: int
) -> None:
    response = "x" * before + tail  # what is counted at a time on the way back is 4,096 long
    kept = [at for at, character in enumerate(response) if character not in INVISIBLE]
    view = clean(response)
    assert len(view.text) == len(kept)
    for position in range(max(0, before - 3), len(kept)):
        assert view.origin(position) == kept[position]
        assert view.end_origin(position + 1) == kept[position] + 1
    if any(sign in response for sign in INVISIBLE):
        assert view.origin(len(kept)) == len(response)
