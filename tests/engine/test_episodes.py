"""Episodes: told once a condition has lasted, ended once it has rested, and the same however the points come in."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.episodes import Episodes, NewestRow
from rlhealth.engine.estimate import Estimate
from rlhealth.verdict.findings import Episode, State
from tests.examples import examples


def follow(text: str, hold: int = 1, clear: int | None = None, sign: str = "above", values=None) -> Episodes:
    """Follows a condition drawn as text: `#` where it holds, `.` where it does not; steps count from 1."""
    episodes = Episodes(hold, clear, sign)
    feed(episodes, text, range(len(text)), values if values is not None else [float(one == "#") for one in text])
    return episodes


def feed(episodes: Episodes, text: str, places, values) -> None:
    places = np.asarray(list(places), np.int64)
    found = np.asarray(values, np.float64)[places]
    beside = Estimate(places * 10.0, places / 10.0)  # of another condition: different at every point
    holds = np.array([text[place] == "#" for place in places], bool)
    episodes.extend(places + 1, [Estimate(found), beside], holds)


def worst_of(episodes: Episodes) -> tuple[int, float]:
    return episodes.worst.step, episodes.worst.value


def spans(episodes: Episodes) -> list[tuple[int, int, int, bool]]:
    return [(one.first_step, one.raised_step, one.last_step, one.active) for one in episodes.raised_episodes]


@pytest.mark.parametrize(
    ("text", "hold", "clear", "told"),
    [
        ("", 1, None, []),
        ("....", 1, None, []),
        ("..#..", 1, None, [(3, 3, 3, False)]),
        ("..###", 1, None, [(3, 3, 5, True)]),
        ("..###..", 3, None, [(3, 5, 5, True)]),
        ("..##..##..", 3, None, []),  # never long enough
        ("..###...", 3, None, [(3, 5, 5, False)]),
        ("###.###...###", 2, 2, [(1, 2, 7, False), (11, 12, 13, True)]),  # one point of rest is no end, two are
        ("#.#.#.#.#.#.", 1, 2, [(1, 1, 11, True)]),  # it does not chatter at its limit
        ("#.#.#.#.#.#.", 2, 2, []),
        ("##.", 2, 5, [(1, 2, 2, True)]),  # it has not rested for long enough: it is standing
        ("##...##", 2, 3, [(1, 2, 2, False), (6, 7, 7, True)]),
        ("##..#", 2, 3, [(1, 2, 5, True)]),  # back within its rest: the same episode
    ],
)
def test_an_episode_is_reported_after_it_lasted_and_ends_after_it_rested(text, hold, clear, told):
    assert spans(follow(text, hold, clear)) == told


@pytest.mark.parametrize(("sign", "worst"), [("above", (3, 9.0)), ("below", (2, 1.0))])
def test_the_worst_is_the_value_furthest_on_the_sick_side(sign, worst):
    assert worst_of(follow("####.", sign=sign, values=[5.0, 1.0, 9.0, 4.0, 99.0])) == worst


def test_the_worst_is_of_what_was_reported_not_of_a_streak_too_short_to_tell():
    episodes = follow("#..###", hold=3, values=[50.0, 0, 0, 2.0, 3.0, 2.0])
    assert worst_of(episodes) == (5, 3.0)


def test_the_worst_of_several_episodes_is_kept():
    assert worst_of(follow("##..##..##", hold=2, values=[2, 3, 0, 0, 8, 7, 0, 0, 4, 5])) == (5, 8.0)


def test_a_point_without_a_value_is_never_the_worst_where_there_is_another():
    assert worst_of(follow("###", values=[np.nan, 2.0, np.nan])) == (2, 2.0)
    assert worst_of(follow("###", sign="below", values=[np.nan, 2.0, np.nan])) == (2, 2.0)


def test_at_the_worst_point_stands_what_each_condition_measured_there_and_its_error():
    worst = follow("..####.", hold=3, values=[0, 0, 5.0, 1.0, 9.0, 4.0, 99.0]).worst
    assert worst.each == ((9.0, pytest.approx(np.nan, nan_ok=True)), (40.0, 0.4))
    early = follow("####", hold=3, values=[9.0, 1.0, 2.0, 3.0]).worst
    assert (early.step, early.each[1]) == (1, (0.0, 0.0)), "also where that was before it had lasted long enough"


TEXTS = st.text("#.", max_size=60)
COUNTS = st.integers(1, 5)


@settings(max_examples=examples(300), deadline=None)
@given(
    text=TEXTS,
    hold=COUNTS,
    clear=st.one_of(st.none(), COUNTS),
    sign=st.sampled_from(["above", "below", "equals"]),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    data=st.data(),
)
def test_points_followed_in_pieces_are_reported_as_points_followed_at_once(text, hold, clear, sign, cuts, data):
    values = data.draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, -3.0, np.inf, np.nan]), min_size=len(text), max_size=len(text))
    )
    whole = follow(text, hold, clear, sign, values)
    pieces = Episodes(hold, clear, sign)
    for start, end in pairwise(sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})):
        feed(pieces, text, range(start, end), values)
    assert pieces.raised_episodes == whole.raised_episodes
    assert pieces.raised_episodes == () or repr(pieces.worst) == repr(whole.worst)


@settings(max_examples=examples(150), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=st.floats(0, 1),
    hold=COUNTS,
    clear=st.one_of(st.none(), COUNTS),
    sign=st.sampled_from(["above", "below"]),
)
def test_a_condition_that_flutters_a_thousand_times_is_reported_as_if_it_were_followed_slowly(
    seed, share, hold, clear, sign
):
    random = np.random.default_rng(seed)
    text = "".join(np.where(random.random(1000) < share, "#", ".").tolist())
    values = random.choice([1.0, 2.0, 3.0, -np.inf, np.inf, np.nan], 1000) if seed % 2 else random.normal(size=1000)
    whole, slowly = follow(text, hold, clear, sign, values), Episodes(hold, clear, sign)
    places = np.sort(random.integers(0, 1000, 150))
    for start, end in pairwise([0, *places.tolist(), 1000]):
        feed(slowly, text, range(start, end), values)
    assert slowly.raised_episodes == whole.raised_episodes
    assert repr(slowly.worst) == repr(whole.worst)


@settings(max_examples=examples(200), deadline=None)
@given(text=TEXTS, hold=COUNTS, clear=st.one_of(st.none(), COUNTS), cut=st.integers(0, 60))
def test_a_prefix_tells_what_the_whole_tells_up_to_there(text, hold, clear, cut):
    prefix, whole = follow(text[:cut], hold, clear), follow(text, hold, clear)
    told = [(one.first_step, one.raised_step) for one in prefix.raised_episodes]
    assert told == [(one.first_step, one.raised_step) for one in whole.raised_episodes if one.raised_step <= cut]


@settings(max_examples=examples(200), deadline=None)
@given(text=TEXTS, hold=COUNTS, clear=COUNTS)
def test_episodes_are_what_their_definition_says(text, hold, clear):
    """The definition in plain loops: told after `hold` points in a row, over after `clear` points without."""
    told: list[Episode] = []
    streak, gap, open_ = 0, 0, False
    first = raised = last = 0
    for step, held in enumerate((one == "#" for one in text), 1):
        if held:
            first = step if not streak and not open_ else first
            streak, gap, last = streak + 1, 0, step
            if not open_ and streak == hold:
                open_, raised = True, step
        elif open_:
            gap += 1
            if gap == clear:
                told.append(Episode(first, raised, last, State.OVER))
                streak, open_ = 0, False
        else:
            streak = 0
    if open_:
        told.append(Episode(first, raised, last))
    assert list(follow(text, hold, clear).raised_episodes) == told


def test_what_is_asked_of_the_newest_row_holds_since_the_first_or_not_at_all() -> None:
    level = NewestRow()
    assert level.raised_episodes == ()
    level.extend(np.array([3, 6]), [Estimate(np.array([0.1, 0.2]))], np.array([True, True]))
    assert level.raised_episodes == (Episode(3, 6, 6, State.STANDING, from_start=True),)
    level.extend(np.array([9]), [Estimate(np.array([0.3]), np.array([0.05]))], np.array([True]))
    assert level.raised_episodes == (Episode(3, 9, 9, State.STANDING, from_start=True),)
    assert level.worst == (9, ((0.3, 0.05),))
    level.extend(np.array([], np.int64), [Estimate(np.empty(0))], np.array([], bool))
    assert level.count == 1
    level.extend(np.array([12]), [Estimate(np.array([0.9]))], np.array([False]))
    assert level.raised_episodes == ()
