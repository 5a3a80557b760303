"""Printed lines that separators alone cannot parse: names and numbers with only spaces between them, and sentences that
state a reward."""

from __future__ import annotations

import re
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_steps import WORD, begins_with_count, behind_count

LONGEST_SPACED = 1000  # characters of a line of names and numbers
_FIRST_WORD = r"[A-Za-z_][\w/.@%()-]{0,60}"
_NUMBER = r"[-+]?\d(?:[\d.,]*\d)?(?:\.|[eE][-+]?\d{1,3}|/\d{1,15})?|[-+]?nan|[-+]?inf"
_WORD_AND_NUMBER = re.compile(rf"({_FIRST_WORD})\s{{1,9}}({_NUMBER})(?=[\s,;%]|$)")
_WORDS_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_WORD_AND_NUMBER.pattern}[\s,;%]*+){{2,100}}")
#: After a count: names of up to three words, some with a colon after them.
_NAME_AND_NUMBER = re.compile(
    rf"({_FIRST_WORD}(?: [A-Za-z_][\w/.@()-]{{0,30}}){{0,2}}):?\s{{1,9}}({_NUMBER})(?=[\s,;|%]|:\s|$)"
)
_COUNT_AND_NUMBERS = re.compile(
    rf"\W{{0,8}}(?={WORD}\b\W{{1,12}}\d)(?:{_NAME_AND_NUMBER.pattern}[\s,;:|%]*+){{2,100}}"
    r"(?:[\d.]{1,12}\s?(?:s|sec|ms|it/s)\s*)?",
    re.IGNORECASE,
)
#: Without a count: names of up to three words that end in what is measured.
_WHAT = r"(?:[A-Za-z][\w/-]{0,20} ){1,2}(?:reward|return|score|loss|length|entropy|kl)s?"
_MEASURED = rf"({_WHAT}):?\s{{1,9}}({_NUMBER})(?=[\s,;|]|$)"
_MEASURED_AND_NUMBER = re.compile(_MEASURED, re.IGNORECASE)
_MEASURED_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_MEASURED}[\s,;|]*+){{2,20}}", re.IGNORECASE)
#: Names joined to their numbers: `batch_10 score_-186.2 avg_loss_1.18`.
_JOINED = re.compile(
    r"(?P<name>[A-Za-z]\w{0,60}?)_(?P<value>[-+]?\d{1,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)(?=\s|$)"
)
_FEWEST_JOINED = 3  # names on a line
LONGEST_SENTENCE = 300  # characters
_REWARD_IN_SENTENCE = re.compile(
    r"(?<![\w-])(?P<name>(?:(?:total|average|avg|mean|cumulative|final|episode)\s)?(?:reward|return|score))s?\s"
    r"(?:(?:of|is|was)\s)?(?P<value>[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)(?=[\s,;!)]|\.(?:\s|$)|$)",
    re.IGNORECASE,
)
#: Words about an episode in a sentence that states its reward.
_ENDS = re.compile(r"\b(?:with|finished|ended|done|completed?|terminated)\b")
_ENDED_WITH = re.compile(
    r"(?:finished|ended|done|completed?|terminated)(?:[.!] | (?:\w+ ){0,4}with (?:an? |the )?)(?=\w)", re.IGNORECASE
)
_WHOSE = r"(?:(?:total|average|avg|mean|cumulative|final|episode|train(?:ing)?|eval(?:uation)?|test|batch)s? ){0,3}"
#: Directly after a count, with any text after it: `Episode 3: Win Rate 0.03 (Recent: 0.05), Loss: 1.2`.
_FIRST = re.compile(
    rf"(?P<name>{_WHOSE}(?:reward sum|reward|return|score|win rate|success rate|accuracy)s?)\s{{1,9}}"
    rf"(?P<value>(?:{_NUMBER})%?)(?=\s?[(,;|\t]|\s(?:averaged|over|on)\b|\.?\s*$)",
    re.IGNORECASE,
)
_PAID = rf"{_WHOSE}(?:rewards?|returns?|scores?|(?:win|success) rate)"
#: `average episode rewards is -199.9`, alone or after a count.
_IS = re.compile(
    rf"(?P<before>\W{{0,8}}{WORD} \d{{1,15}}\W{{1,4}})?(?P<name>{_PAID}) (?:is|are|was|were) (?P<value>{_NUMBER})\s*",
    re.IGNORECASE,
)
#: `Reward after 3 episodes is 0.5`, `After 3 episodes, …`; but `After 3 games, …` may be part of a word problem.
_AFTER = re.compile(
    rf"\W{{0,8}}(?P<name>{_PAID} )?after (?(name)|(?!\d{{1,15}} (?:step|round|game)))"
    rf"(?:(?P<n>\d{{1,15}}) (?P<word>{WORD})|(?P<other>{WORD}) (?P<m>\d{{1,15}}))\b",
    re.IGNORECASE,
)
#: `Reward for episode 3: 0.5`, `reward in controller epoch 3 : -1`; a sentence about a game may be a word problem.
_WITHIN = re.compile(
    rf"\W{{0,8}}(?:the )?(?P<name>{_PAID}) (?:for|in|at|of|during) (?:[a-z]{{2,20}} ){{0,2}}(?!round|game)"
    rf"(?P<count>{WORD}\s{{1,3}}\d{{1,15}})\s{{0,3}}(?:[:=]|(?:is|was)\b)",
    re.IGNORECASE,
)
#: `Reward 30 for game 3`
_REWARD_FIRST = re.compile(
    rf"\W{{0,8}}(?P<name>{_PAID}):? (?P<value>{_NUMBER}) (?:for|in|at|after) (?P<count>{WORD}\s{{1,3}}\d{{1,15}})\W*",
    re.IGNORECASE,
)
#: `Episode 3: 20.5`, `EPISODE 3 27`: the number of an episode that has no name is its reward.
_BARE = re.compile(
    rf"(?P<count>\W{{0,3}}ep(?:isode)?\s{{0,2}}\d{{1,9}})\s?[:\s]\s{{0,4}}(?P<value>{_NUMBER})\s*", re.IGNORECASE
)
_HASH = re.compile(r"(?P<word>\W{0,8}(?:episode|ep|game)) # ?(?=\d)", re.IGNORECASE)
#: `[Gen 3] Best: 29.8 | Mean: 22.9`: of evolution, whose rewards are called fitness.
_EVOLVED = re.compile(
    r"\W{0,3}gen(?:eration)?[ #]{1,4}(?P<n>\d{1,9})(?:/\d{1,9})?\W{1,4}(?P<rest>[A-Z][^\n]{1,300})", re.IGNORECASE
)
_OF_ALL = re.compile(r"\b(?P<of>best|max|mean|avg|average)(?=\s?[:=]\s?[-+\d])", re.IGNORECASE)
#: Of a book that teaches CartPole, whose reward is a point a step: `3 Episode: Finished after 20 steps: mean = 15.5`.
_OF_CARTPOLE = re.compile(
    r"(?P<n>\d{1,9}) Episode:? [Ff]inished after (?P<steps>\d{1,9})(?:\.0+)? (?:time )?steps\s?[:\uff1a/]"
    r"[^=:\uff1a\n]{1,40}?\s?[=:\uff1a ]\s?(?P<mean>\d{1,9}(?:\.\d{1,9})?)\s*"
)
_SAYS = re.compile(r" (?:is|are|was|were) ")
_VALUE = r"[-+]?\d{1,15}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?"
#: TD3's evaluations, `Evaluation over 10 episodes: 27.3`, and `Evaluation at step 5000: 25.5 +/- 3.2`.
_EVALUATED = re.compile(
    r"\W{0,8}evaluation (?:over \d{1,6} (?:episodes|trajectories)|(?:at|after) (?:step|episode) (?P<step>\d{1,15})):"
    rf"\s{{1,4}}(?P<value>{_VALUE})(?:\s?(?:±|\+/?-)\s?[\d.]{{1,20}})?\s*",
    re.IGNORECASE,
)
#: Of Karpathy's policy gradients: `resetting env. episode reward total was -21.0. running mean: -20.9`.
_RESETTING = re.compile(
    rf"\s*resetting env\.\s+episode reward total was (?P<total>{_VALUE})\.\s+running mean: (?P<mean>{_VALUE})\s*"
)
#: `***** Episode 3 reward 24.7 *****`
_STARRED = re.compile(rf"\*{{2,20}}\s*(?P<said>{WORD} \d{{1,15}}\W[^*\n]{{1,200}}?)\s*\*{{2,20}}\s*", re.IGNORECASE)
#: A number directly behind its name: `episode 3 score-1.5 average score -2.2`.
_GLUED = re.compile(r"(?<![\w-])score(?=-?\d{1,15}\.\d)")
#: A line of Dreamer: `[1000] train_return 27.0 / train_length 500.0 / fps 30.0`.
_OF_DREAMER = re.compile(
    rf"\[(?P<step>\d{{1,15}})\] (?P<pairs>[\w./-]{{1,60}} {_VALUE}(?: / [\w./-]{{1,60}} {_VALUE}){{1,60}})\s*"
)
#: `3 reward -23.1/ 10.5/ 40.0 len 200.0`: an iteration of Ray's examples, with minimum, mean and maximum.
_OF_RAY = re.compile(
    r"\s*(?P<iteration>\d{1,9})\s+reward\s+(?P<reward_min>NUMBER)/\s*(?P<reward_mean>NUMBER)/\s*(?P<reward_max>NUMBER)"
    r"\s+len\s+(?P<episode_len_mean>NUMBER)(?=\s|$)".replace("NUMBER", r"[-+]?\d{1,15}(?:\.\d{1,20})?")
)
_STATISTICS = re.compile(
    r"\b(?P<names>mean(?:/(?:median|std|min|max)){1,4}) (?P<of>reward|return|score)s? "
    r"(?P<values>[-+]?\d[\d.]*(?:/[-+]?\d[\d.]*){1,4})(?=[\s,;]|$)"
)


def spaced_pairs(text: str) -> dict[str, Any]:
    """The pairs of a line of only names and numbers, `episode 3 average reward 0.5 length 20`; names of several words
    count only after a step count, or if all end in what is measured: `mean reward 0.5 max reward 3`. Empty for any
    other line."""
    if len(text) > LONGEST_SPACED:
        return {}
    if several := words_and_numbers(text):
        return several
    if _COUNT_AND_NUMBERS.fullmatch(text):
        found = _NAME_AND_NUMBER.finditer(text)
        return {of_an_end(pair[1]): pair[2] for pair in found if number(pair[2]) is not None}
    if _MEASURED_AND_NUMBERS.fullmatch(text):
        return {pair[1]: pair[2] for pair in _MEASURED_AND_NUMBER.finditer(text) if number(pair[2]) is not None}
    return _joined(text) if "_" in text and "." in text else {}


def of_an_end(name: str) -> str:
    """What an episode ended with, `reward` of `finished with a reward` and `finished. reward`; any other name is
    unchanged."""
    ended = _ENDED_WITH.match(name)
    return name[ended.end() :] if ended is not None else name


def words_and_numbers(text: str) -> dict[str, Any]:
    """The pairs of a text in which single words and numbers alternate, two pairs or more; empty for any other text."""
    if not _WORDS_AND_NUMBERS.fullmatch(text):
        return {}
    return {pair[1]: pair[2] for pair in _WORD_AND_NUMBER.finditer(text) if number(pair[2]) is not None}


def _joined(text: str) -> dict[str, Any]:
    """The pairs of a line in which all names are joined to their numbers by an underscore."""
    parts = text.split()
    found = [pair for part in parts if (pair := _JOINED.fullmatch(part)) is not None]
    is_all = len(found) == len(parts) >= _FEWEST_JOINED and any("." in pair["value"] for pair in found)
    return {pair["name"]: pair["value"] for pair in found} if is_all else {}


def leading_reward(text: str) -> dict[str, Any]:
    """The reward, or the win rate, that follows directly, without a separator, the step count at the start of a
    line."""
    pair = _FIRST.match(behind_count(text))
    return {pair["name"]: pair["value"].rstrip(".")} if pair is not None else {}


def with_sign(text: str) -> str:
    """The line `average reward is 0.5` as `average reward: 0.5`, and `average reward after 3 episodes is 0.5` as
    `episodes 3: average reward: 0.5`; the same with "for" or "in" an episode. Lengths of CartPole's episodes get the
    names of PyTorch's example, and those of evaluations the name of their reward; a score that is joined to its number
    is parted from it. Any other line is unchanged."""
    if (within := _WITHIN.match(text)) is not None:
        return f"{within['count']}: {within['name']}: {text[within.end() :].lstrip()}"
    if "valuation " in text and (evaluated := _EVALUATED.fullmatch(text)) is not None:
        at = f"step {evaluated['step']}: " if evaluated["step"] else ""
        return f"{at}eval_reward: {evaluated['value']}"
    if "resetting env" in text and (reset := _RESETTING.fullmatch(text)) is not None:
        return f"episode_reward: {reset['total']}, running_mean_reward: {reset['mean']}"
    if (first := _REWARD_FIRST.fullmatch(text)) is not None:
        return f"{first['count']}: {first['name']}: {first['value']}"
    if (bare := _BARE.fullmatch(text)) is not None:
        return f"{bare['count'].strip()}: episode reward: {bare['value']}"
    if (evolved := _EVOLVED.fullmatch(text)) is not None:
        named = _OF_ALL.sub(r"\g<of> fitness", evolved["rest"])
        return f"generation {evolved['n']}: {named}" if named != evolved["rest"] else text
    if text.startswith("**") and (starred := _STARRED.fullmatch(text)) is not None:
        text = starred["said"]
    if (after := _AFTER.match(text) if "fter " in text else None) is not None:
        rest = text[after.end() :]
        text = f"{after['word'] or after['other']} {after['n'] or after['m']}: {after['name'] or ''}" + (
            rest.lstrip() if after["name"] else rest.lstrip(" ,:-")
        )
    if "inished after" in text and (played := _OF_CARTPOLE.fullmatch(text)) is not None:
        return f"Episode {played['n']}: Last length: {played['steps']}, Average length: {played['mean']}"
    said = _IS.fullmatch(text.strip().removesuffix(".")) if _SAYS.search(text) else None
    if said is not None:
        return f"{said['before'] or ''}{said['name']}: {said['value']}"
    text = _HASH.sub(r"\g<word> ", text, count=1) if " #" in text else text
    return _GLUED.sub("score ", text) if "score" in text else text


def without_slashes(line: str) -> str:
    """A line of Dreamer with its step and its pairs as other trainers print them, `step 1000: fps 30.0, …`; any other
    line is unchanged."""
    of_dreamer = _OF_DREAMER.fullmatch(line) if line.startswith("[") and " / " in line else None
    if of_dreamer is None:
        return line
    pairs = (pair.rpartition(" ") for pair in of_dreamer["pairs"].split(" / "))
    return f"step {of_dreamer['step']}: " + ", ".join(f"{name}: {value}" for name, _, value in pairs)


def reward_in_sentence(text: str) -> dict[str, Any]:
    """The reward in a sentence that begins with a step count, `Episode 3 finished with reward 0.5 after 20 steps`,
    or statistics of it: `mean/median reward 0.5/0.4`, `3 reward 0.1/0.5/0.9 len 20`."""
    if "/" in text and (of_ray := _OF_RAY.match(text)) is not None:
        return of_ray.groupdict()
    if "/" in text and (several := _STATISTICS.search(text)) is not None:
        names, values = several["names"].split("/"), several["values"].split("/")
        return {f"{name} {several['of']}": value for name, value in zip(names, values, strict=False)}
    if len(text) > LONGEST_SENTENCE or not _ENDS.search(text) or not begins_with_count(text):
        return {}
    return {pair["name"].strip(): pair["value"] for pair in reversed(list(_REWARD_IN_SENTENCE.finditer(text)))}
