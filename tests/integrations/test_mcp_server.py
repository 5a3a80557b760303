"""The MCP server, asked by the SDK's own client over stdio, as an agent asks it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES, ROOT, SICK

Ask = Callable[..., list[Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Calls tools of one server process one after the other; each answer as the client hands it over."""
    mcp = pytest.importorskip("mcp", reason="needs the extra mcp")  # here: its import takes a second of each worker

    def asked(*calls: tuple[str, dict[str, Any]], folder: Path | None = None) -> list[Any]:
        async def talk() -> list[Any]:
            server = mcp.StdioServerParameters(
                command=sys.executable,
                args=["-m", "rlhealth", "mcp"],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                cwd=str(folder or tmp_path),
            )
            async with mcp.Client(server) as client:
                if not calls:
                    return list((await client.list_tools()).tools)
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(asyncio.wait_for(talk(), 100))

    return asked


def said(answer: Any) -> dict[str, Any]:
    assert not answer.is_error, answer.content
    return answer.structured_content


def test_every_tool_is_listed_with_what_it_does(ask: Ask) -> None:
    tools = {one.name: one for one in ask()}
    assert set(tools) == {"list_runs", "check", "vitals", "advise", "explain", "compare", "series"}
    assert all(one.description and len(one.description) < 400 for one in tools.values())


def test_an_agent_finds_a_sick_run_its_cause_and_the_curve_behind_it(ask: Ask) -> None:
    listed, checked, curve, explained = map(
        said,
        ask(
            ("list_runs", {"where": str(SICK)}),
            ("check", {"where": str(SICK)}),
            ("series", {"where": str(SICK), "metric": "kl", "points": 20}),
            ("explain", {"rule": "kl-high-per-token"}),
        ),
    )
    assert [one["run"] for one in listed["runs"]] == ["lr-jump"]
    finding = checked["runs"][0]["findings"][0]
    assert (checked["verdict"], finding["rule"], finding["since_step"]) == ("critical", "learning-rate-jump", 82)
    assert "kl-high-per-token" in finding["explains"] and finding["try"]
    assert checked["runs"][0]["vitals"]["policy"] == "sick"
    assert len(json.dumps(checked)) < 4000
    assert len(curve["points"]) <= 20 and curve["logged"] == 140 and curve["unit"] == "nats/token"
    assert max(value for _, value in curve["points"]) == pytest.approx(4.808, abs=0.001)
    assert explained["rules"][0]["sources"] and explained["rules"][0]["fires"]


def test_the_whole_report_comes_only_where_it_is_asked_for(ask: Ask) -> None:
    short, full = map(said, ask(("check", {"where": str(SICK)}), ("check", {"where": str(SICK), "full": True})))
    assert full["schema"] == "rlhealth.report/1" and full["runs"][0]["skipped"]
    assert len(json.dumps(full)) > 4 * len(json.dumps(short))


def test_the_vital_signs_of_one_run_come_with_their_metrics(ask: Ask) -> None:
    several, one = ask(
        ("vitals", {"where": str(FIXTURES / "compare")}),
        ("vitals", {"where": str(FIXTURES / "compare"), "run": "forgets"}),
    )
    assert several.is_error and "good-polite" in several.content[0].text
    signs = {sign["sign"]: sign for sign in said(one)["vitals"]}
    assert len(signs) == 8 and signs["reward"]["metric"] == "reward"
    assert (signs["reward"]["state"], signs["policy"]["unit"]) == ("sick", "fraction")
    assert all(sign["said"] for sign in signs.values())


def test_a_run_is_compared_with_known_good_ones(ask: Ask) -> None:
    good = [str(FIXTURES / "compare" / name) for name in ("good-polite", "good-strong-kl", "good-tight-kl")]
    answer = said(ask(("compare", {"where": str(FIXTURES / "compare" / "forgets"), "baselines": good}))[0])
    assert [one["verdict"] for one in answer["runs"]] == ["warning"]
    assert answer["runs"][0]["findings"]


def test_a_wrong_place_metric_run_or_rule_is_one_line_with_what_to_try_and_the_server_goes_on(ask: Ask) -> None:
    answers = ask(
        ("list_runs", {"where": "/nowhere/at/all"}),
        ("series", {"where": str(SICK), "metric": "entropyy"}),
        ("check", {"where": str(SICK), "run": "lr-jmp"}),
        ("explain", {"rule": "kl-hihg"}),
        ("check", {"where": "/nowhere/at/all"}),
    )
    for answer, expected in zip(answers[:4], ("no such file", "entropy", "lr-jump", "kl-h"), strict=True):
        assert answer.is_error
        text = answer.content[0].text
        assert expected in text and "Traceback" not in text and "--" not in text
    assert said(answers[4])["verdict"] == "unknown" and said(answers[4])["errors"]


def test_it_judges_by_the_settings_of_the_folder_it_runs_in(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "rlhealth.toml").write_text('select = ["critic-lost"]\n', encoding="utf-8")
    answer = said(ask(("check", {"where": str(SICK)}), folder=tmp_path)[0])
    assert not answer["runs"][0]["findings"]


def test_advice_names_the_trainers_own_options_or_where_to_look(ask: Ask) -> None:
    too_high = FIXTURES / "tensorboard" / "grpo-sentences"
    setting, looking, missing = ask(
        ("advise", {"where": str(too_high)}),
        ("advise", {"where": str(SICK)}),
        ("advise", {"where": str(too_high), "run": "nobody"}),
    )
    [change] = said(setting)["changes"]
    assert (change["option"], change["from"], change["to"]) == ("learning_rate", 0.03, 0.003) and change["why"]
    assert said(looking)["changes"] == [] and said(looking)["look"][0]["advice"]
    assert missing.is_error and "there is no run" in missing.content[0].text
