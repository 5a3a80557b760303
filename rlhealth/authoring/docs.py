"""Documentation that is generated from the rules, and a check that it is up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlhealth.authoring.coverage import coverage_page
from rlhealth.authoring.lint import guidance
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules, shipped_rules
from rlhealth.rules.model import FAMILIES, Rule
from rlhealth.rules.words import in_words, scope, severities
from rlhealth.system.files import write_whole

_WRITTEN = "<!-- written by `rlhealth rules docs --write` from the rule files; a test fails where it is stale -->\n"

_ABOUT = {
    "ratio": "How much likelier the updated policy makes the tokens that the old one sampled; 1 is no change.",
    "approx-kl": "KL between the policy before and after an update; not the KL to the reference.",
    "clip-fraction": "How many tokens the clipped loss ignores.",
    "kl-high": "Distance of the policy from the reference model.",
    "kl-negative": "An estimate of the KL to the reference that cannot be right.",
    "kl-coef": "The coefficient that an adaptive controller sets.",
    "entropy": "How random the policy is.",
    "value-loss": "How wrong the critic is.",
    "reward-trend": "What training maximises: whether it rises, and whether it lasts.",
    "reward-signal": "Whether rewards differ, so that there is something to learn from.",
    "reward-hacking": "Reward that is earned without doing the task.",
    "truncation": "Completions that do not end by themselves.",
    "length": "How long completions are.",
    "grad-norm": "The size of the gradient.",
    "loss": "The loss itself, which has no natural scale and seldom says much.",
    "numerics": "Numbers that are not finite, and metrics that vanish because of it.",
    "dead": "Training that changes nothing.",
    "stalled": "Runs that died, fell silent or ended before their plan.",
    "mismatch": "Disagreement between the sampler's and the trainer's probabilities.",
    "throughput": "How long steps take, and how much memory.",
    "evaluation": "The held-out score against the training reward.",
    "agent": "Turns, tool calls and environments.",
    "text": "What completions say: repetition, diversity, empties.",
    "settings": "Settings far from what is usual: facts for a cause, never an alarm by themselves.",
    "diagnosis": "Root causes: what began first among the findings, and what followed from it.",
}


def documents(rules: Sequence[Rule] | None = None) -> dict[str, str]:
    """Every generated document by its path from the root of the repository."""
    known = load_rules() if rules is None else rules
    return {
        "rules/README.md": rules_page(known),
        "docs/trl-guidance.md": guidance_page(known),
        "docs/coverage.md": coverage_page(known, _ABOUT, _WRITTEN),
        "docs/settings.md": settings_page(),
    }


def settings_page() -> str:
    """Every setting of rlhealth.toml, with its type and meaning, from the schema."""
    from rlhealth.settings.schema import SettingsFile

    schema = SettingsFile.model_json_schema()
    parts = {
        "ignore": "Ignore",
        "gate": "GateSettings",
        "watch": "WatchSettings",
        "rules.ID": "Parameters",
        "rules.ID.critical": "CriticalLimits",
    }
    lines = [
        "# Settings",
        "",
        _WRITTEN.replace("the rule files", "the schema"),
        "In `rlhealth.toml`, or under `[tool.rlhealth]` in `pyproject.toml`: the nearest file from the working folder"
        " upwards, or `--config FILE`. A flag on the command line wins. `rlhealth init` writes a commented file;"
        " `rlhealth rules schema --settings` prints the JSON schema, with which editors complete and check.",
        *_settings_table("At the top", schema),
    ]
    for name, part in parts.items():
        heading = f"`[[{name}]]`" if name == "ignore" else f"`[{name}]`"
        lines += [*_settings_table(heading, schema["$defs"][part])]
    return "\n".join(lines) + "\n"


def _settings_table(heading: str, schema: Mapping[str, Any]) -> list[str]:
    rows = [
        f"| `{name}` | {_type(said)} | {said.get('description', '')} |" for name, said in schema["properties"].items()
    ]
    return ["", f"## {heading}", "", "| key | value | meaning |", "|---|---|---|", *rows]


def _type(said: Mapping[str, Any]) -> str:
    """A JSON schema type in a word or two."""
    if "enum" in said:
        return ", ".join(f"`{one}`" for one in said["enum"])
    if "anyOf" in said:
        return " or ".join(dict.fromkeys(_type(one) for one in said["anyOf"] if one.get("type") != "null"))
    if "$ref" in said or "allOf" in said:  # pydantic below 2.9 wraps a reference that has a description of its own
        return "table"
    kind = str(said.get("type", "value"))
    if kind == "array":
        return f"list of {_type(said['items'])}s"
    words = {"object": "table", "boolean": "`true` or `false`", "integer": "whole number"}
    return {"date": "date"}.get(said.get("format", ""), words.get(kind, kind))


def stale(root: Path, rules: Sequence[Rule] | None = None) -> list[str]:
    """The documents below `root` that differ from the current rules."""
    return [
        name
        for name, text in documents(rules).items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


def write(root: Path, rules: Sequence[Rule] | None = None) -> list[str]:
    """Writes the stale documents below `root`; returns their names."""
    texts = documents(rules)
    changed = stale(root, rules)
    for name in changed:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(root / name, texts[name])
    return changed


def repository() -> Path:
    """The checkout that the rules belong to.

    Raises:
        RlhealthError: if rlhealth is installed without one.
    """
    folder = shipped_rules()
    if not isinstance(folder, Path) or folder.name != "rules":
        raise RlhealthError(
            "there is no repository around these rules", hint="run it from a checkout: git clone, then pip install -e ."
        )
    return folder.parent


def rules_page(rules: Sequence[Rule]) -> str:
    """rules/README.md: every rule by family, when it fires and where its limits come from."""
    lines = [
        "# Rules",
        "",
        _WRITTEN,
        f"{len(rules)} rules in {len({rule.family for rule in rules})} families. `rlhealth explain ID` says "
        "why a rule matters and what to try; `rlhealth rules test` runs",
        "the cases beside each rule; `rlhealth rules new ID` prints a rule to start from. "
        "`--select` and `--ignore` take ids and families.",
        "",
        "Every measure looks backwards only, so that a live run is judged as it will be in the end.",
        "",
    ]
    for family in FAMILIES:
        mine = [rule for rule in rules if rule.family == family]
        if mine:
            lines += [
                f"## {family}",
                "",
                _ABOUT.get(family, ""),
                "",
                "| rule | severity | fires where | limits from |",
                "|---|---|---|---|",
            ]
            lines += [_row(rule) for rule in mine] + [""]
    return "\n".join(lines)


def guidance_page(rules: Sequence[Rule]) -> str:
    """docs/trl-guidance.md: each sentence of TRL's own guidance, and the rules that encode it."""
    said = guidance()
    lines = [
        "# TRL's guidance, and the rules that encode it",
        "",
        _WRITTEN,
        "TRL's Logging page says, in three versions, which values are crucial. Each of its "
        "sentences, paraphrased, and the rules that judge it:",
    ]
    for letter, page in said["pages"].items():
        lines += [
            "",
            f"## {page['title']}",
            "",
            f"From {page['page']}.",
            "",
            "| | TRL says | rules | note |",
            "|---|---|---|---|",
        ]
        lines += [_sentence(row, one, rules) for row, one in said["sentences"].items() if row.startswith(letter)]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    link = f"[{rule.id}]({rule.family}/{rule.id}.yaml)"
    said = "<br>".join((*in_words(rule), *(f"*{one}*" for one in scope(rule))))
    return f"| {link}<br>{_cell(rule.title)} | {severities(rule)} | {_cell(said)} | {_cell(rule.cites)} |"


def _sentence(row: str, one: Mapping[str, str], rules: Sequence[Rule]) -> str:
    links = ", ".join(f"[{rule.id}](../rules/{rule.family}/{rule.id}.yaml)" for rule in rules if row in rule.guidance)
    return f"| {row} | {_cell(one['says'])} | {links or 'none'} | {_cell(one.get('note', one.get('not_shown', '')))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
