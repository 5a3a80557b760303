"""The JSON report keeps its schema, and stays strict whatever a log holds."""

import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from rlhealth.reports import ReportOptions, write
from rlhealth.verdict.verdicts import Verdict

SCHEMA = json.loads((files("rlhealth.reports") / "report.schema.json").read_text("utf-8"))


def read(verdict: Verdict, **look: bool) -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(write(verdict, "json", ReportOptions(**look)), parse_constant=refuse)


@pytest.mark.parametrize("name", ["healthy", "sick", "unknown", "nothing", "many", "hostile"])
def test_every_answer_follows_the_schema(name: str, request: pytest.FixtureRequest) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(read(request.getfixturevalue(name)))


def test_the_fields_of_a_finding_are_those_of_the_contract(sick: Verdict) -> None:
    run = read(sick)["runs"][0]
    cause = run["findings"][0]
    assert cause["rule"] == "step-size-too-big"
    assert cause["explained_by"] is None
    assert (cause["first_step"], cause["raised_step"], cause["worst_step"], cause["worst_value"], cause["limit"]) == (
        81,
        83,
        82,
        9.4,
        4.0,
    )
    assert cause["try"] == list(sick.runs[0].causes[0].advice)
    assert [one["rule"] for one in run["findings"] if one["explained_by"] == "step-size-too-big"] == [
        "grad-norm-spike",
        "kl-high",
        "entropy-collapse",
    ]
    assert len(run["findings"]) == len(sick.runs[0].findings)
    assert run["ignored"][0]["reason"] == "known since May"
    assert run["steps"] == {"first": 1, "last": 140, "points": 140}


def test_a_number_that_is_not_finite_is_a_word(hostile: Verdict) -> None:
    finding = next(one for one in read(hostile)["runs"][0]["findings"] if one["rule"] == "nan-loss")
    assert (finding["worst_value"], finding["limit"]) == ("Infinity", "NaN")


def test_names_come_back_whole_and_no_character_can_act(hostile: Verdict) -> None:
    text = write(hostile, "json", ReportOptions())
    assert all(one.isprintable() or one == "\n" for one in text)
    assert [run["run"] for run in json.loads(text)["runs"]] == [run.name for run in hostile.runs]


def test_ascii_is_ascii(hostile: Verdict) -> None:
    assert write(hostile, "json", ReportOptions(ascii=True)).isascii()
