"""What is wrong with a rule file is said in plain words, at the key that a person wrote."""

from __future__ import annotations

import pytest

from rlhealth.authoring.cases import read_cases
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import read_rule

RULE = """\
id: mine
family: loss
title: A title
severity: warning
when:
  all:
  - {condition}
message: A message.
because: A reason.
try: [Something.]
source: [{{text: A source}}]
"""


def error_of(text: str) -> str:
    with pytest.raises(RlhealthError) as error:
        read_rule(text, "mine.yaml")
    return error.value.message


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("above: high", "7:18: when.all.0.above: expected a number or a table of names and values"),
        ("above: true", "7:18: when.all.0.above: expected a number or a table of names and values"),
        ("above: {times: 2}", "7:18: when.all.0.above.setting: is missing"),
        ("above: {setting: 3}", "7:26: when.all.0.above.setting: expected text in quotes"),
        ("above: {setting: lr, tims: 2}", "7:39: when.all.0.above.tims: unknown key; did you mean `times`?"),
        ("above: {setting: lr, times: x}", "7:39: when.all.0.above.times: expected a number"),
        ("above: 1, last: 0", "7:28: when.all.0.last: expected 1 or more"),
        ("above: 1, last: few", "7:28: when.all.0.last: expected a whole number"),
        ("above: 1, absolute: 1", "7:28: when.all.0.absolute: expected true or false"),
        ("above: 1, measure: middle", "7:5: when.all.0: no measure `middle`; there are value, "),
    ],
)
def test_a_condition(condition: str, said: str) -> None:
    text = RULE.format(condition=f"{{metric: kl, {condition}}}")
    assert error_of(text).startswith(f"mine.yaml:{said}")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("try: [Something.]", "try: Something.", "10:1: try: expected a list, such as […]"),
        ("try: [Something.]", "try: []", "10:1: try: expected a list of 1 or more entries"),
        ("source: [{text: A source}]", "source: [A source]", "11:10: source.0: expected a table of names and values"),
        ("severity: warning", "severity: bad", "4:1: severity: expected one of 'info', 'warning' or 'critical'"),
        ("title: A title", "title: 3", "3:1: title: expected text in quotes"),
        ("title: A title", f"title: {'x' * 201}", "3:1: title: expected text of 200 characters or fewer"),
        (
            "try: [",
            "critical: {standard_errors: -1.5}\ntry: [",
            "10:12: critical.standard_errors: expected 0 or more",
        ),
        (
            "source: [",
            "changes: [{setting: lr, to: [1], why: so}]\nsource: [",
            "11:25: changes.0.to: expected true or false, a number or text in quotes",
        ),
    ],
)
def test_a_rule(before: str, after: str, said: str) -> None:
    text = RULE.format(condition="{metric: kl, above: 1}")
    assert error_of(text.replace(before, after)) == f"mine.yaml:{said}"


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("3", "cases.0.expect: expected one of 'quiet' or 'skipped' or a table of names and values"),
        ("{severty: info}", "cases.0.expect.severty: unknown key; did you mean `severity`?"),
    ],
)
def test_a_case_of_a_rule(expect: str, said: str) -> None:
    with pytest.raises(RlhealthError) as error:
        read_cases(f"rule: mine\ncases:\n- {{name: one, steps: 9, expect: {expect}}}", "mine.test.yaml", {})
    assert error.value.message.endswith(said)
