"""Names in other languages are put into English, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.metrics.languages import in_english, signs


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (
            "回合 10/800, 奖励: 1.5, 平均奖励: 2.0, 损失: 0.1",
            "episode 10/800, reward: 1.5, average reward: 2.0, loss: 0.1",
        ),
        ("第 10 回合，总奖励：1.5", "episode 10,total reward:1.5"),
        ("エピソード 10: 報酬 = 1.5, 平均報酬 = 2.0", "episode 10: reward = 1.5, average reward = 2.0"),
        ("에피소드 3 완료", "episode 3 finished"),
        ("최근 10개 평균 보상: 2.0", "최근 10개 average reward: 2.0"),
        ("Episodio 10 - Recompensa media: 2.0 - Épsilon: 0.4", "episode 10 - average reward: 2.0 - epsilon: 0.4"),
        ("Épisode 10, Récompense moyenne: 2.0", "episode 10, average reward: 2.0"),
        ("Эпизод 10: средняя награда = 2.0", "episode 10: average reward = 2.0"),
        ("Belohnung = 2.0", "reward = 2.0"),
        ("Bölüm 1, Toplam Ödül: 2.0", "episode 1, total reward: 2.0"),
        ("回合奖励5", "episode reward 5"),
        ("recompensa_media", "average reward"),
        ("Episod,RecompensaTotala,Epsilon", "episode,total reward,Epsilon"),
        ("episod,total_reward", "episode,total_reward"),
        ("episodes: 10, reward: 2.0", "episodes: 10, reward: 2.0"),
        ("Episod 10, Recompensă medie: 2.0", "episode 10, average reward: 2.0"),
        ("Епізод 10: винагорода = 2.0", "episode 10: reward = 2.0"),
        ("Epizoda 3, odměna: 2.0", "Epizoda 3, reward: 2.0"),
    ],
)
def test_words_for_rewards_and_episodes_are_put_into_english(text: str, english: str) -> None:
    assert in_english(text) == english


@pytest.mark.parametrize(
    "text", ["Episode 10, Reward: 2.0", "perdita 3", "preconditioned: 1", "x" * 2000 + "奖励", "récompensé: 2"]
)
def test_other_words_stay(text: str) -> None:
    assert in_english(text) == text


@given(st.text(alphabet="0123456789.,:=|-+eE ()[]abcxyz奖励回合éöдepsodıİſ", max_size=60))
def test_no_number_is_changed(text: str) -> None:
    kept = str.maketrans("", "", "".join(set(in_english(text) + text) - set("0123456789.")))
    assert in_english(text).translate(kept) == text.translate(kept)


@pytest.mark.parametrize(
    "line", ["回合 3: 平均奖励 2.0", "Recompensa: 2.0", "Ricompensa 2.0", "Награда: 2.0", "Ödül: 2.0", "총 보상: 2"]
)
def test_a_line_that_tells_a_reward_has_a_sign_of_it(line: str) -> None:
    block = line.encode().lower()
    assert any(sign in block for sign in signs(block))


def test_a_log_in_english_has_no_other_signs_than_those_of_a_few_stems() -> None:
    assert len(signs(b"episode 3: reward 2.0\n")) < 10
