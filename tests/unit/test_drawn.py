"""What is drawn follows from names and seeds alone: not from chance, nor from what is loaded."""

from __future__ import annotations

from drawn import drawn
from hypothesis import core, given, settings
from hypothesis import strategies as st
from strategies import any_streams

from strandline.model.intervals import DAY_MS

NUMBERS = st.lists(st.integers(0, 2**48), min_size=300, max_size=300)


def test_a_name_draws_the_same_each_time_and_another_name_or_seed_another(monkeypatch):
    drawings = [drawn(any_streams(), name) for name in ("a", "a", "b")]
    assert drawings[0] == drawings[1]
    assert drawings[0] != drawings[2]
    monkeypatch.setattr(core, "global_force_seed", 7)
    assert drawings[0] != drawn(any_streams(), "a")


def test_what_is_drawn_is_rich():
    assert len(set(drawn(NUMBERS, "rich"))) > 100


def test_numbers_that_stand_in_loaded_modules_are_not_drawn_more_than_others():
    assert not {3_600_000, DAY_MS} & set(drawn(NUMBERS, "literals"))


def test_a_law_of_make_test_draws_the_same_each_time():
    def examples() -> list[list[int]]:
        found: list[list[int]] = []

        @settings(max_examples=30)
        @given(NUMBERS)
        def law(numbers: list[int]) -> None:
            found.append(numbers)

        law()
        return found

    assert examples() == examples()
