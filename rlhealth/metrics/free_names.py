"""Names that nobody wrote down: under which plain names a tag of an unknown trainer may stand, the surest first; the
words by which they are taken apart are data (free_names.yaml)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from rlhealth.metrics.catalogue import FOLDER, names
from rlhealth.parsing.own_texts import read_texts

_BETWEEN = re.compile(r"[\s.()-]+")
_ASIDE = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"(\d{1,5})(?:ep|eps|episodes?)?")
_FEWEST_AVERAGED = 10  # episodes; a lower number alone is that of an agent or a level, `avg_reward_0`
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def plain(tag: str) -> str:
    """The name in lower case with underscores for spaces and points, as most trainers write it: `Grad. Norm` is
    `grad_norm`.
    """
    return _BETWEEN.sub("_", tag.strip().lower()).strip("_")


@lru_cache(maxsize=4096)
def forms(tag: str) -> tuple[str, ...]:
    """The plain names under which a tag may be known, the surest first: `Average Reward/(t)` is `average_reward`,
    `Train/Policy/Loss` is `policy/loss` and `policy_loss`, `MeanReward` is `mean_reward`. A mean of the last
    episodes is called `mean_reward_of_100`, whatever the order of its words.
    """
    found: list[str] = _of_the_last(tag)
    averaged = len(found)
    for text in dict.fromkeys((tag, _HUMP.sub("_", tag), _ASIDE.sub("", tag))):
        parts = [part for part in (plain(part) for part in text.split("/")) if part]
        while len(parts) > 1 and parts[-1] in _words()["tails"]:
            parts = parts[:-1]
        found.append("/".join(parts))
        while len(parts) > 1 and parts[0] in _words()["heads"]:
            parts = parts[1:]
            found.append("/".join(parts))
        if len(parts) > 1:
            found.append("_".join(parts))
            if parts[-1] in _words()["plain_last"] and not any(one.isdigit() for one in parts[0]):
                found.append(parts[-1])
    name, _, last = found[averaged].rpartition("_")
    if name and last in _words()["kept"]:
        found.append(name)
    found += [rest for name in tuple(found) for rest in _without_first(name)]
    return tuple(dict.fromkeys([*found, plain(tag)]))


def _of_the_last(tag: str) -> list[str]:
    """What a mean reward of the last episodes is called, where a tag's words are those of one: `Reward/Mean_100`,
    `mean_100ep_reward`, `avg_score_last_50_episodes`."""
    said = [_same().get(word, word) for word in plain(_HUMP.sub("_", tag)).replace("/", "_").split("_")]
    while len(said) > 3 and said[0] in _words()["heads"] and said[0] != "mean":
        said = said[1:]
    counts = [found[1] for word in said if (found := _NUMBER.fullmatch(word))]
    rest = [word for word in said if not _NUMBER.fullmatch(word)]
    is_mean = rest.count("mean") == 1 and sum(word in _words()["paid"] for word in rest) == 1
    others = [word for word in rest if word != "mean" and word not in _words()["paid"]]
    if len(counts) != 1 or not is_mean or not _words()["beside_the_last"].issuperset(others):
        return []
    over = int(counts[0])
    return [f"mean_reward_of_{over}"] if over >= _FEWEST_AVERAGED or (others and over > 1) else []


def _without_first(name: str) -> list[str]:
    """The name without a first word that says where the number comes from; that of an evaluation is called `eval`."""
    first, _, rest = name.partition("_")
    if rest and first in _words()["first_words"]:
        return [rest]
    return [f"eval_{rest}", f"eval/{rest}"] if rest and first in _words()["evaluated_words"] else []


def evaluation(tag: str) -> str:
    """What stands behind a first part that names an evaluation, `Evaluation/Mean Reward`; "" if there is none."""
    first, _, rest = tag.partition("/")
    return rest if plain(first) in _words()["evaluations"] else ""


def in_another_order(file: str, tag: str) -> str:
    """The name in that file that has the same words as the tag in another order, `avg_resp_len` for
    `mean_response_length`; "" if there is none, or several of different meanings.
    """
    return _by_words(file).get(_key(tag), "")


@cache
def _by_words(file: str) -> dict[tuple[str, ...], str]:
    """The names of a file by their words, those left out whose words mean two things."""
    found: dict[tuple[str, ...], str] = {}
    vocabulary = names(file)
    for name, aliases in vocabulary.exact.items():
        key = _key(name)
        if not key or aliases[0].drop:
            continue
        other = found.setdefault(key, name)
        if other and vocabulary.exact[other][0].name != aliases[0].name:
            found[key] = ""
    return found


@lru_cache(maxsize=4096)
def _key(tag: str) -> tuple[str, ...]:
    """The words of a name, sorted; none of one whose meaning hangs on their order."""
    words = [_same().get(word, word) for word in plain(tag).replace("/", "_").split("_")]
    return () if len(words) < 2 or not _words()["ordered"].isdisjoint(words) else tuple(sorted(words))


@cache
def _words() -> dict[str, frozenset[str]]:
    """The lists of words by name, read when the first name of an unknown trainer is met."""
    return {
        name: frozenset(words)
        for name, words in read_texts(FOLDER / "free_names.yaml").items()
        if not isinstance(words, dict)
    }


@cache
def _same() -> dict[str, str]:
    """For each word that means what another does, that other."""
    texts = read_texts(FOLDER / "free_names.yaml")["same"]
    return {word: meant for meant, words in texts.items() for word in words}
