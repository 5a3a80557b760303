"""Undocumented names: the plain names that a tag of an unknown trainer may have, the most certain first; the words for
taking names apart are in free_names.yaml."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from rlhealth.metrics.catalogue import FOLDER, names
from rlhealth.metrics.languages import HUMP, in_english
from rlhealth.parsing.own_texts import read_texts

_BETWEEN = re.compile(r"[\s.():-]+")
_REWARD_PART = re.compile(r"rew(?:ard)?s?\s*/", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"(\d{1,5})(?:ep|eps|episodes?)?")
#: What a curve was drawn over: `Mean Reward Against Episodes`, `reward_vs_steps`.
_DRAWN_OVER = re.compile(
    r"[\s_-](?:against|vs\.?|versus)[\s_-](?:the[\s_-])?(?:(?:time|env|training|total|global)[\s_-]?)?"
    r"(?:time|steps?|timesteps?|episodes?|iterations?|epochs?|frames?|updates?)$",
    re.IGNORECASE,
)
#: When it was measured: `Reward Sum for this iteration`.
_OF_THIS = re.compile(
    r"[\s_](?:(?:for|in|of|at|during)[\s_])?(?:this|the|each|current)[\s_](?:iteration|episode|epoch|update|rollout|batch|game)$",
    re.IGNORECASE,
)
_LAST_OF = re.compile(r"(?<![a-z])(last|ma|mean|avg|average)(?=\d)", re.IGNORECASE)
#: `Reward100`, `Score 100`: a round number after a reward is the size of its average; it is too high for an index.
#: `Mean100` alone is the mean reward of so many episodes.
_OVER = re.compile(r"(?:(?:reward|rew|return|score)s?[ (]{0,2}|(?:mean|avg)[ _]?)(50|[125]00|1000)\)?", re.IGNORECASE)
_CONTROL_FILE = "generic_control.yaml"
#: A Gymnasium environment id before a metric: `CartPole-v1/train_reward`, `ALE/Pong-v5/reward`.
_ENVIRONMENT = re.compile(r"(?:[A-Za-z]\w{0,30}/)?[A-Za-z]\w{0,60}(?:-[A-Za-z]\w{0,40}){0,4}-v\d{1,2}/(?=[^/])")
#: The first pass of an update over its samples, as the prefix of its losses: `epoch0/loss`.
_PASS = re.compile(r"(?:inner_|ppo_)?epoch_?0")
_FEWEST_AVERAGED = 10  # episodes; a lower number is the index of an agent or a level, `avg_reward_0`


def plain(tag: str) -> str:
    """The name in lower case with underscores for spaces and points, as most trainers write it: `Grad. Norm` is
    `grad_norm`.
    """
    return _BETWEEN.sub("_", tag.strip().lower()).strip("_")


@lru_cache(maxsize=1 << 17)  # all names of a run, because each is looked up more than once
def forms(tag: str) -> tuple[str, ...]:
    """The plain names that a tag may have, the most certain first: `Average Reward/(t)` is `average_reward`,
    `Train/Policy/Loss` is `policy/loss` and `policy_loss`, `MeanReward` is `mean_reward`. A mean of the last
    episodes becomes `mean_reward_of_100`, and a running one `rolling_reward`, whatever the order of its words.
    """
    tag = _OF_THIS.sub("", _DRAWN_OVER.sub("", _without_environment(in_english(tag))))
    found: list[str] = _of_the_last(tag) or _running(tag)
    averaged = len(found)
    for text in dict.fromkeys((tag, HUMP.sub("_", tag), _without_aside(tag))):
        parts = [part for part in (plain(part) for part in text.split("/")) if part]
        while len(parts) > 1 and parts[-1] in _words()["tails"]:
            parts = parts[:-1]
        found.append("/".join(parts))
        while len(parts) > 1 and (parts[0] in _words()["heads"] or _PASS.fullmatch(parts[0])):
            parts = parts[1:]
            found.append("/".join(parts))
        if len(parts) > 1:
            found.append("_".join(parts))
            if parts[-1] in _words()["plain_last"] and _is_of_the_run(parts[0]):
                found.append(parts[-1])
            if parts[0] in _words()["evaluated_words"]:
                found.append(f"eval/{'/'.join(parts[1:])}")
    name, _, last = found[averaged].rpartition("_")
    if name and (last in _words()["kept"] or (last in _words()["whole"] and _is_paid(name))):
        found.append(name)
    found += [rest for name in tuple(found) for rest in _without_first(name)]
    found += [rest for name in tuple(found) if (rest := _without_algorithm(name)) != name]
    return tuple(dict.fromkeys([*found, *_component(tag), plain(tag)]))


def _without_aside(tag: str) -> str:
    """The name without a bracket at its end, unless that changes its meaning: `Reward (eval)`."""
    name, _, aside = tag.rstrip(") ").rpartition("(")
    another = _words()["another"] | _words()["of_others"] | (_words()["no_kind"] - _words()["averaged_over"])
    return tag if not name or not another.isdisjoint(_said(aside)) else _ASIDE.sub("", tag)


def _without_environment(tag: str) -> str:
    """The name after the id of an environment."""
    found = _ENVIRONMENT.match(tag) if "-v" in tag else None
    return tag[found.end() :] if found is not None else tag


def _without_algorithm(name: str) -> str:
    """A reward's name without the name of the algorithm between its words: `mean_grpo_reward` is `mean_reward`."""
    words = name.split("_")
    rest = [word for word in words if word not in _words()["algorithms"]]
    return "_".join(rest) if len(rest) > 1 and _is_paid("_".join(rest)) else name


def is_below_a_task(tag: str) -> bool:
    """Whether a name is below a word that may be a task, `reach/success_rate`; in `rollout/success_rate`, the word is
    only its origin."""
    first, _, rest = tag.partition("/")
    return bool(rest) and plain(first) not in _words()["heads"]


def _is_of_the_run(first: str) -> bool:
    """Whether a first part names neither one of several (`agent_0`) nor a reference that the run is compared with."""
    return not any(one.isdigit() for one in first) and _words()["of_others"].isdisjoint(first.split("_"))


def _is_paid(name: str) -> bool:
    return not (_words()["paid"] | _words()["solved"]).isdisjoint(_said(name))


@lru_cache(maxsize=256)  # each form of a name asks for them anew
def _said(name: str) -> tuple[str, ...]:
    """The words of a name, each replaced by its standard synonym."""
    return tuple([_meant(word) for word in _split(name)])


def _split(name: str) -> list[str]:
    return plain(HUMP.sub("_", name)).replace("/", "_").split("_")


def _meant(word: str) -> str:
    return _same().get(word, word)


def _of_the_last(tag: str) -> list[str]:
    """The name for a mean reward of the last episodes or steps, if a tag's words are those of one: `Reward/Mean_100`,
    `mean_100ep_reward`, `avg_score_last_50_episodes`, `Mean Reward (last 1000 steps)`, `Average100 Score`."""
    if (averaged := _OVER.fullmatch(tag)) is not None:
        return [f"mean_reward_of_{averaged[1]}"]
    said = _said(_LAST_OF.sub(r"\1_", tag))
    while len(said) > 3 and said[0] in _words()["heads"] and said[0] != "mean":
        said = said[1:]
    counts = [found[1] for word in said if (found := _NUMBER.fullmatch(word))]
    rest = [word for word in said if not _NUMBER.fullmatch(word)]
    is_mean = rest.count("mean") == 1 or ("mean" not in rest and not _words()["of_the_last"].isdisjoint(rest))
    is_mean = is_mean and sum(word in _words()["paid"] for word in rest) == 1
    others = [word for word in rest if word != "mean" and word not in _words()["paid"]]
    if len(counts) != 1 or not is_mean or not _words()["beside_the_last"].issuperset(others):
        return []
    if any("step" in word for word in others):
        return ["mean_reward_over_steps"]
    over = int(counts[0])
    return [f"mean_reward_of_{over}"] if over >= _FEWEST_AVERAGED or (others and over > 1) else []


def _running(tag: str) -> list[str]:
    """The name for a running mean of the reward, if a tag's words are those of one: `ep_ret_ma`, `Smoothed Score`. A
    plain `running_reward` has a name of its own, as its script is known."""
    said = _said(tag)
    rest = [word for word in said if word != "mean" and word not in _words()["running"]]
    others = [word for word in rest if word not in _words()["paid"]]
    if said == ("running", "reward") or _words()["running"].isdisjoint(said) or len(rest) - len(others) != 1:
        return []
    is_known = (_words()["beside_the_last"] | _words()["first_words"]).issuperset(others)
    return ["rolling_reward"] if is_known else []


def _without_first(name: str) -> list[str]:
    """A name without a first word for its origin; an evaluation's first word becomes `eval`. It may follow a mean:
    `avg_test_reward` is `eval_avg_reward`."""
    first, _, rest = name.partition("_")
    if _meant(first) == "mean" and _is_paid(rest):
        origin, _, rest = rest.partition("_")
        first, rest = origin, rest and f"{first}_{rest}"
    if rest and (first in _words()["first_words"] or (first in _words()["averaged_over"] and _is_paid(rest))):
        return [rest]
    return [f"eval_{rest}", f"eval/{rest}"] if rest and first in _words()["evaluated_words"] else []


#: The reward of one of a few, by its number: `Reward 1` beside `Reward 2`; `reward_100` is a mean.
_OF_ONE = re.compile(r"reward \d")


def _component(tag: str) -> list[str]:
    """The name of one of several rewards, `format_reward` for `mean_format_reward`, `reward_format` and
    `Format/Rewards`, if no word shows that it is a statistic, a setting, a loss or another agent's."""
    written = _split(tag)
    while (
        len(written) > 2 and written[0] in _words()["heads"] | _words()["first_words"] and _meant(written[0]) != "mean"
    ):
        written = written[1:]
    rest = [word for word in written if _meant(word) != "mean"]
    said = [_meant(word) for word in rest]
    if len(rest) < max(2, len(written) - 1) or "reward" not in (said[0], said[-1]):
        return []
    if _OF_ONE.fullmatch(" ".join(said)):
        return [f"{said[1]}_reward"]
    is_last = said[-1] == "reward"
    kind = slice(said[0] == "reward" and len(said) > 2, -1) if is_last else slice(1, None)
    spelled, said = "_".join(rest[kind]), said[kind]
    is_open = "reward" in said or any(word.isdigit() for word in said) or _no_kind_at_all().issuperset(said)
    if not is_last and not _REWARD_PART.search(tag):
        is_open = is_open or _words()["doubtful_last"].issuperset(said)
    return [] if is_open or not is_component(spelled, is_last) else [f"{spelled}_reward"]


@cache
def _no_kind_at_all() -> frozenset[str]:
    """Words that alone do not show which reward it is: `env_reward`, `all_rewards`."""
    return _words()["heads"] | _words()["whole"] | _words()["averaged_over"]


def is_component(name: str, is_before: bool) -> bool:
    """Whether a reward function may have that name.

    Args:
        is_before: whether the word `reward` follows: `tag_count_reward` is a reward, `reward/count` is a count.
    """
    said = [word for word in _said(name) if word != "mean"]
    if "reward" in said:
        said, is_before = said[: said.index("reward")] or said, True
    if not is_before and ((said[-1:] and said[-1] in _words()["no_head"]) or not _words()["no_part"].isdisjoint(said)):
        return False
    if not is_before and (_words()["whole"] | _words()["averaged_over"]).issuperset(said):
        return not said
    return (_words()["no_kind"] | _words()["of_others"]).isdisjoint(said)


def evaluation(tag: str) -> str:
    """The rest of a name whose first part, `Evaluation/Mean Reward`, or last part, `Reward/Eval`, marks an evaluation;
    "" if there is none."""
    first, _, rest = tag.partition("/")
    if plain(first) in _words()["evaluations"]:
        return rest
    before, _, last = tag.rpartition("/")
    return before if plain(last) in _words()["evaluations"] else ""


def known_ending(name: str) -> str:
    """The longest ending of a name, of two words or more, that trainers of control tasks log: `ep_rew_mean` of
    `PPO_walker_7_ep_rew_mean`; "" if there is none."""
    known = names(_CONTROL_FILE).exact
    words = plain(name).split("_")
    endings = ("_".join(words[at:]) for at in range(1, len(words) - 1))
    return next((ending for ending in endings if ending in known), "")


def in_another_order(file: str, tag: str) -> str:
    """The name in that file that has the same words as the tag in another order, `avg_resp_len` for
    `mean_response_length`; "" if there is none, or several of different meanings.
    """
    return _by_words(file).get(_key(tag), "")


@cache
def _by_words(file: str) -> dict[tuple[str, ...], str]:
    """The names of a file by their words; ambiguous words are left out."""
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
    """The words of a name, sorted; none if its meaning depends on their order."""
    words = _said(tag.lower())
    return () if len(words) < 2 or not _words()["ordered"].isdisjoint(words) else tuple(sorted(words))


@cache
def _words() -> dict[str, frozenset[str]]:
    """The lists of words by name, read at the first name of an unknown trainer."""
    return {
        name: frozenset(words)
        for name, words in read_texts(FOLDER / "free_names.yaml").items()
        if not isinstance(words, dict)
    }


@cache
def _same() -> dict[str, str]:
    """The standard synonym of each word that has one."""
    texts = read_texts(FOLDER / "free_names.yaml")["same"]
    return {word: meant for meant, words in texts.items() for word in words}
