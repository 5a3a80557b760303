"""Printed lines that say in words what others say with signs, rewritten as those: `average reward is 0.5` as `average
reward: 0.5`."""

from __future__ import annotations

import re

from rlhealth.sources.rows.printed_steps import WORD, begins_with_count
from rlhealth.sources.rows.printed_words import NUMBER, PAID_WORDS
from rlhealth.sources.rows.row_names import PAID

_VALUE = r"[-+]?\d{1,15}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?"
_WITH_SPREAD = rf"\s{{1,4}}(?P<value>{_VALUE})(?:\s?(?:±|\+/?-)\s?[\d.]{{1,20}})?\s*"


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


#: Whole lines, each with the line that says the same.
_LINES = (
    # `Reward for episode 3: 0.5`, `reward in controller epoch 3 : -1`; a sentence about a game may be a word problem
    (
        _line(
            rf"\W{{0,8}}(?:the )?(?P<name>{PAID_WORDS}) (?:for|in|at|of|during) (?:[a-z]{{2,20}} ){{0,2}}(?!round|game)"
            rf"(?P<count>{WORD}\s{{1,3}}\d{{1,15}})\s{{0,3}}(?:[:=]|(?:is|was)\b)\s*(?P<rest>[^\n]*)"
        ),
        "{count}: {name}: {rest}",
    ),
    # TD3's evaluations, `Evaluation over 10 episodes: 27.3`, and `Evaluation at step 5000: 25.5 +/- 3.2`
    (
        _line(r"\W{0,8}evaluation over \d{1,6} (?:episodes|trajectories):" + _WITH_SPREAD),
        "eval_reward: {value}",
    ),
    (
        _line(r"\W{0,8}evaluation (?:at|after) (?:step|episode) (?P<step>\d{1,15}):" + _WITH_SPREAD),
        "step {step}: eval_reward: {value}",
    ),
    # Keras' example of DDPG: `Episode * 3 * Avg Reward is ==> -190.2`
    (
        _line(rf"Episode \* (?P<n>\d{{1,9}}) \* (?P<name>{PAID_WORDS}) is ==> (?P<value>{NUMBER})\s*"),
        "Episode {n}: {name}: {value}",
    ),
    # the title of trlX's table of answers
    (_line(rf"\s*evaluation #\d{{1,9}} (?P<said>reward/mean: {_VALUE}[^\n]{{0,300}}?)\s*"), "{said}"),
    # of Karpathy's policy gradients: `resetting env. episode reward total was -21.0. running mean: -20.9`
    (
        _line(
            rf"\s*resetting env\.\s+episode reward total was (?P<total>{_VALUE})\."
            rf"\s+running mean: (?P<mean>{_VALUE})\s*"
        ),
        "episode_reward: {total}, running_mean_reward: {mean}",
    ),
    # Sample Factory's `Fps is (10 sec: 819.2, …). Total num frames: 20480. …`, which heads the line below it,
    # `Avg episode reward: [(0, '4.430')]`, with each policy's
    (_line(r"Fps is \([^()\n]{1,120}\)\. Total num frames: (?P<n>\d{1,15})\.[^\n]{0,300}"), "step {n}"),
    (
        _line(rf"Avg episode reward: \[\((?P<policy>\d{{1,3}}), '(?P<value>{_VALUE})'\)[^\n]{{0,300}}"),
        "Avg episode reward/policy_{policy}: {value}",
    ),
    # PFRL's and ChainerRL's `outdir:results step:180 episode:0 R:180.0`, which heads its `statistics:[…]`,
    # and the episodes of their evaluations
    (
        _line(
            r"outdir:\S{1,300} (?:global_)?step:(?P<step>\d{1,15}) (?:(?:episode|local_step):\d{1,15} )?"
            rf"(?:last_R:\s?\S{{1,30}} average_)?R:\s?(?P<value>{_VALUE}|nan)\s*"
        ),
        "step {step}\nepisode_reward: {value}",
    ),
    (
        _line(rf"evaluation episode \d{{1,9}} length:\s?(?P<length>\d{{1,15}}) R:\s?(?P<value>{_VALUE})\s*"),
        "reward: {value}, length: {length}",
    ),
    # DeepRL's `total steps 2048, returns 1.5/1.2/-0.3/4.0 (mean/median/min/max), 900 steps/s`, and of its evaluations
    # `steps 2048, episodic_return_test 1.50(0.33)`
    (
        _line(
            rf"total steps (?P<step>\d{{1,15}}), returns (?P<mean>{_VALUE})/{_VALUE}/(?P<min>{_VALUE})/"
            rf"(?P<max>{_VALUE}) \(mean/median/min/max\)[^\n]{{0,60}}"
        ),
        "steps {step}, mean_return: {mean}, min_return: {min}, max_return: {max}",
    ),
    (
        _line(rf"steps (?P<step>\d{{1,15}}), (?P<name>episodic_return_test) (?P<value>{_VALUE})\({_VALUE}\)\s*"),
        "steps {step}, {name}: {value}",
    ),
    # `----- rollout reward: -12.4`
    (_line(rf"\s*[-=#]{{3,40}}\s?(?P<name>{PAID_WORDS})\s?[:=]\s?(?P<value>{NUMBER})[-=#\s]*"), "{name}: {value}"),
    # `Reward 30 for game 3`, `Got reward 30 in episode 3`
    (
        _line(
            rf"\W{{0,8}}(?:(?:got|received|earned|achieved) (?:an? )?)?"
            rf"(?P<name>{PAID_WORDS}):? (?P<value>{NUMBER}) (?:for|in|at|after) "
            rf"(?P<count>{WORD}\s{{1,3}}\d{{1,15}})\W*"
        ),
        "{count}: {name}: {value}",
    ),
    # `Episode 3: 20.5`, `EPISODE 3 27 (avg 22)`: the number of an episode that has no name is its reward
    (
        _line(
            rf"\W{{0,3}}(?P<count>ep(?:isode)?\s{{0,2}}\d{{1,9}})\s?[:\s]\s{{0,4}}(?P<value>{NUMBER})"
            r"(?:\s\([^()\n]{1,80}\))?\s*"
        ),
        "{count}: episode reward: {value}",
    ),
    # `Episode reward 20.5`, alone on its line
    (
        _line(rf"\W{{0,8}}(?P<name>(?!rewards?|returns?|scores?){PAID_WORDS}):?\s{{1,9}}(?P<value>{NUMBER})\s*\|?\s*"),
        "{name}: {value}",
    ),
    # `3 -> Episode reward: 20.5`, `#3 reward 20.5`, `3/100 episode, reward: 20.5`
    (
        _line(
            r"\s*(?P<hash>#)?(?P<n>\d{1,9})(?P<of>/\d{1,9})?"
            r"\s?(?(of)(?:->|=>|episodes?\b)|(?:->|=>|(?(hash)(?=\s)|(?!))))[\s,:|-]{1,4}"
            rf"(?P<rest>{PAID_WORDS}\s?[:=\s]\s{{0,4}}{NUMBER}(?:[\s,;|(][^\n]{{0,200}})?)"
        ),
        "episode {n}: {rest}",
    ),
    # `  100 mean training reward:  1.28`
    (
        _line(
            rf"\s*(?P<n>\d{{1,9}})\s{{1,4}}(?P<name>(?:mean|avg|average) {PAID_WORDS}):\s{{0,9}}(?P<value>{NUMBER})\s*"
        ),
        "episode {n}: {name}: {value}",
    ),
    # of a book on CartPole, whose reward is a point a step, `3 Episode: Finished after 20 steps: mean = 15.5`:
    # it gets the names of PyTorch's example
    (
        _line(
            r"(?P<n>\d{1,9}) Episode:? finished after (?P<steps>\d{1,9})(?:\.0+)? (?:time )?steps\s?[:\uff1a/]"
            r"[^=:\uff1a\n]{1,40}?\s?[=:\uff1a ]\s?(?P<mean>\d{1,9}(?:\.\d{1,9})?)\s*"
        ),
        "Episode {n}: Last length: {steps}, Average length: {mean}",
    ),
)
#: `average episode rewards is -199.9`, alone or after a count; `average reward over last 20 games is 3`.
_IS = _line(
    rf"(?P<before>\W{{0,8}}{WORD} \d{{1,15}}\W{{1,4}})?(?:[a-z]{{3,12}}! )?"
    rf"(?P<name>{PAID_WORDS}(?: (?:over|of|in|for) (?:the )?(?:last|past) \d{{1,6}} [a-z]{{2,12}})?) "
    rf"(?:is|are|was|were) (?P<value>{NUMBER})\s*"
)
_SAYS = re.compile(r" (?:is|are|was|were) ")
#: `Reward after 3 episodes is 0.5`, `After 3 episodes, …`; but `After 3 games, …` may be part of a word problem.
_AFTER = _line(
    rf"\W{{0,8}}(?P<name>{PAID_WORDS} )?after (?(name)|(?!\d{{1,15}} (?:step|round|game)))"
    rf"(?:(?P<n>\d{{1,15}}) (?P<word>{WORD})|(?P<other>{WORD}) (?P<m>\d{{1,15}}))\b"
)
#: `[Gen 3] Best: 29.8 | Mean: 22.9`: of evolution, whose rewards are called fitness.
_EVOLVED = _line(r"\W{0,3}gen(?:eration)?[ #]{1,4}(?P<n>\d{1,9})(?:/\d{1,9})?\W{1,4}(?P<rest>[A-Z][^\n]{1,300})")
_OF_ALL = _line(r"\b(?P<of>best|max|mean|avg|average)(?=\s?[:=]\s?[-+\d])")
#: `Episode 100   Avg: -475.55   BestAvg: -inf   σ: 54.36`: what is averaged beside an episode's number is its reward,
#: and so is the result that is averaged beside an epoch's.
_AVERAGED = _line(
    r"\W{0,3}ep(?:isode|(?P<epoch>och?))?s?(?P<n>\s{0,3}[:#]?\s{0,9}\d{1,9}(?:/\d{1,9})?[\s|,;:-]{1,9})"
    r"(?P<of>avg\.?|average|mean)(?(epoch) results?|(?: (?:results?|points))?)"
    r"(?P<after>\s?[:=]\s{0,9}[-+]?\d[^\n]{0,300})"
)
#: `Episode 100  Last score: 0.00  Moving average: 0.005`: what is averaged along the episodes is what they earn.
_MOVING = _line(
    r"(?P<before>\W{0,3}ep(?:isode)?s?\s{0,3}[:#]?\s{0,9}\d{1,9}\b[^\n]{0,120}?\bmoving (?:average|avg|mean))"
    r"(?P<after>\s?[:=]\s{0,9}[-+]?\d[^\n]{0,200})"
)
#: `Ep 151-200: Success 4.5%`: the last of the episodes that are averaged counts. `Episode 3 -20` is a reward below 0.
_RANGE = _line(r"(?P<before>\W{0,8}ep(?:isode)?s?\s{1,4})\d{1,9}(?:-\s{0,4}|\s-\s{1,4})(?P<last>\d{1,9})(?=\s?[:|\t])")
#: What stands between the parts of a line behind a count: `Episode 3 --- reward 26.0 >> steps 33`.
_BETWEEN = re.compile(r"\s(?:-{2,5}|>{1,3}|\|\||~)\s")
#: What happened to an episode, between its number and what it earned: `Episode 3/60 finished, total reward: 27.1`.
_HAPPENED = _line(
    rf"(?P<count>\W{{0,8}}{WORD}\s{{1,3}}\d{{1,15}}(?:/\d{{1,15}})?)\s(?:is\s)?"
    r"(?:finished|done|ended|over|completed?|terminated)\s?[,.:;!|-]{1,3}\s"
)
#: `***** Episode 3 reward 24.7 *****`
_STARRED = _line(rf"\*{{2,20}}\s*(?P<said>{WORD} \d{{1,15}}\W[^*\n]{{1,200}}?)\s*\*{{2,20}}\s*")
_HASH = _line(r"(?P<word>\W{0,8}(?:episode|ep|game)) # ?(?=\d)")
#: A value and the best so far, `final reward (best): -15 (-12)`: the name says of both what they are.
_WITH_BEST = re.compile(rf"\s?\(best\)(?P<value>\s?[:=]\s{{0,9}}{NUMBER})\s?\(\s{{0,9}}(?:{NUMBER})\)", re.IGNORECASE)
#: A number directly behind its name: `episode 3 score-1.5 average score -2.2`.
_GLUED = re.compile(r"(?<![\w-])score(?=-?\d{1,15}\.\d)")
#: Names before one colon, and as many numbers behind it: `3th cur_reward, cur_loss:  15.7 36.0`.
_NAMES_FIRST = re.compile(
    r"(?:(?P<n>\d{1,15})(?:st|nd|rd|th)\s)?\W{0,8}"
    r"(?P<names>[A-Za-z_][\w ]{0,40}(?:,\s?[A-Za-z_][\w ]{0,40}){1,8})\s?:\s+"
    rf"(?P<values>{_VALUE}(?:[\s,]{{1,9}}{_VALUE}){{1,8}})\s*"
)
#: A line of Dreamer: `[1000] train_return 27.0 / train_length 500.0 / fps 30.0`.
_OF_DREAMER = re.compile(
    rf"\[(?P<step>\d{{1,15}})\] (?P<pairs>[\w./-]{{1,60}} {_VALUE}(?: / [\w./-]{{1,60}} {_VALUE}){{1,60}})\s*"
)
#: `statistics:[('average_q', 9.8), ('average_loss', np.float64(0.05))]`, below PFRL's line of a step.
_STATISTICS = re.compile(r"statistics:\[(?P<pairs>\('[^\[\]\n]{1,2000}\))\]\s*")
_STATISTIC = re.compile(
    rf"\('(?!cumulative_steps|n_updates)(?P<name>\w{{1,60}})', (?:np\.\w{{1,20}}\()?(?P<value>{_VALUE}|nan)\)"
)


def reworded(text: str) -> str:
    """The line with signs between its names and numbers, if it is one of those that say them in words; any other line
    is unchanged."""
    for pattern, form in _LINES:
        if (found := pattern.fullmatch(text)) is not None:
            return form.format_map(found.groupdict())
    if (evolved := _EVOLVED.fullmatch(text)) is not None:
        named = _OF_ALL.sub(r"\g<of> fitness", evolved["rest"])
        return f"generation {evolved['n']}: {named}" if "fitness" in named.lower() else text
    if (averaged := _AVERAGED.fullmatch(text)) is not None and PAID.search(text) is None:
        counted = "epoch" if averaged["epoch"] else "episode"
        return f"{counted}{averaged['n']}{averaged['of']} reward{averaged['after']}"
    if (range_ := _RANGE.match(text)) is not None:
        text = f"{range_['before']}{range_['last']}{text[range_.end() :]}"
    if (happened := _HAPPENED.match(text)) is not None:
        text = f"{happened['count']}: {text[happened.end() :]}"
    if _BETWEEN.search(text) and begins_with_count(text):
        text = _BETWEEN.sub(" | ", text)
    if "oving " in text and (moving := _MOVING.fullmatch(text)) is not None:
        text = f"{moving['before']} reward{moving['after']}"
    if "," in text and (paired := _paired(text)):
        return paired
    if text.startswith("statistics:[") and (listed := _STATISTICS.fullmatch(text)) is not None:
        return ", ".join(f"{one['name']}: {one['value']}" for one in _STATISTIC.finditer(listed["pairs"]))
    if text.startswith("**") and (starred := _STARRED.fullmatch(text)) is not None:
        text = starred["said"]
    if (after := _AFTER.match(text) if "fter " in text else None) is not None:
        rest = text[after.end() :]
        text = f"{after['word'] or after['other']} {after['n'] or after['m']}: {after['name'] or ''}" + (
            rest.lstrip() if after["name"] else rest.lstrip(" ,:-")
        )
    said = _IS.fullmatch(text.strip().removesuffix(".")) if _SAYS.search(text) else None
    if said is not None:
        return f"{said['before'] or ''}{said['name']}: {said['value']}"
    if "(best)" in text:
        text = _WITH_BEST.sub(r"\g<value>", text)
    text = _HASH.sub(r"\g<word> ", text, count=1) if " #" in text else text
    return _GLUED.sub("score ", text) if "score" in text else text


def _paired(text: str) -> str:
    """A line of names before numbers with each number behind its name; empty for any other line."""
    found = _NAMES_FIRST.fullmatch(text)
    if found is None:
        return ""
    names, values = found["names"].split(","), re.split(r"[\s,]+", found["values"])
    if len(names) != len(values):
        return ""
    said = ", ".join(f"{name.strip()}: {value}" for name, value in zip(names, values, strict=True))
    return f"iteration {found['n']}: {said}" if found["n"] else said


def without_slashes(line: str) -> str:
    """A line of Dreamer with its step and its pairs as other trainers print them, `step 1000: fps 30.0, …`; any other
    line is unchanged."""
    of_dreamer = _OF_DREAMER.fullmatch(line) if line.startswith("[") and " / " in line else None
    if of_dreamer is None:
        return line
    pairs = (pair.rpartition(" ") for pair in of_dreamer["pairs"].split(" / "))
    return f"step {of_dreamer['step']}: " + ", ".join(f"{name}: {value}" for name, _, value in pairs)
