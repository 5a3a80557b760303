"""The terminal report: verdict first, cause before consequence, nothing lost at any width, harmless whatever a log
holds.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from rlhealth.metrics import translate
from rlhealth.reports import REPORTS, ReportOptions, words, write
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from rlhealth.verdict.vitals import vitals

ANSWERS = ["healthy", "sick", "unknown", "nothing", "many", "hostile"]
SICK = """\
 ✗ polite-lr-jump   2 critical, 3 warning, 1 info
   TRL GRPOTrainer 1.16.0 · trainer_state.json · 140 steps · 14 min · finished
   healthy for 8 min, then 6 min after it broke at step 81
   · resumed at step 70
   · taken for GRPO, not RLOO: the names are the same and no setting
     distinguishes them

 critical[step-size-too-big]  Each update moves the policy too far
   3 findings share one cause: from step 81 each update moved the policy too far

"""


def shown(verdict: Verdict, **look: object) -> str:
    return write(verdict, "terminal", ReportOptions(**look))  # type: ignore[arg-type]


def test_a_sick_run_shows_its_verdict_then_its_cause_then_what_followed_then_what_to_do(sick: Verdict) -> None:
    text = shown(sick)
    assert text.startswith(SICK)
    order = [
        "step-size-too-big]",
        "├ step 81  grad_norm",
        "├ step 82  kl ",
        "└ step 86  entropy ",
        "▲ since step 81",
        "why   ",
        "try   · Lower",
        "rlhealth explain step-size",
    ]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert text.rstrip().endswith("exit 1")
    assert "1 run critical · 1 ignored, 4 rules skipped · fail-on critical" in text


def test_several_rules_about_one_metric_are_one_row(sick: Verdict) -> None:
    [run] = sick.runs
    [kl] = [one for one in run.findings if one.rule == "kl-high"]
    run.findings.append(replace(kl, rule="kl-rises", severity=Severity.WARNING, first_step=84))
    for width in (80, 140):
        text = shown(sick, width=width)
        assert len(re.findall(r"[├└] step \d+ +kl ", text)) == 1 and "kl-high, kl-rises" in text


def test_a_spread_of_nothing_is_called_constant(sick: Verdict) -> None:
    [run] = sick.runs
    place = next(place for place, one in enumerate(run.findings) if one.rule == "kl-high")
    flat = _with_lead(run.findings[place], side="below", value=0.0, limit=1e-9)
    run.findings[place] = flat
    assert re.search(r"kl +[▁-█]+ +constant", shown(sick)) and "1e-9" not in shown(sick)


def _with_lead(one: Finding, **fields: object) -> Finding:
    return replace(one, conditions=(replace(one.lead, **fields), *one.conditions[1:]))  # type: ignore[arg-type]


@pytest.mark.parametrize("ascii", [False, True])
def test_the_limit_stands_behind_a_sign_s_curve_as_high_as_it_is(ascii: bool, sick: Verdict) -> None:
    [run] = sick.runs
    place = next(place for place, one in enumerate(run.findings) if one.rule == "kl-high")
    run.findings[place] = _with_lead(run.findings[place], level=2.5)
    line = next(line for line in shown(sick, ascii=ascii).splitlines() if "policy movement" in line)
    assert re.search(r"[_.=+*%#-]\|[_.=+*%#-] " if ascii else "[▁-█]▏[▁-█] ", line)
    assert "limit 2.5" in shown(sick, ascii=ascii)


@pytest.mark.parametrize("width", [80, 140])
def test_many_runs_have_their_vital_signs_as_marks_and_their_reasons_whole(width: int, many: Verdict) -> None:
    lines = shown(many, width=width).splitlines()
    sick = next(line for line in lines if "lr3e-3_s0" in line)
    assert re.search(r"[✓▲✗·?─]{8}$", sick), "eight marks"
    unknown = next(run for run in many.runs if run.verdict == "unknown")
    assert unknown.no_answer in " ".join(" ".join(lines).split())


def test_the_onset_stands_below_its_own_cell(sick: Verdict) -> None:
    lines = shown(sick).splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("   frac_reward_zero_std  "))
    blocks = re.search("[▁▂▃▄▅▆▇█]+", lines[row])
    assert blocks is not None
    cell = (90 - 1) * len(blocks.group()) // 140
    assert lines[row + 1] == " " * (blocks.start() + cell) + "▲ since step 90"
    assert "100 % (limit 80 %)" in lines[row], "a fraction is shown in per cent"


def test_a_healthy_run_shows_eight_vital_signs_from_first_to_last(healthy: Verdict) -> None:
    lines = [line for line in shown(healthy, width=140).splitlines()[2:] if re.match(r" [✓▲✗?─·] [a-z ]+  ", line)]
    titles = [re.match(r" . ([a-z ]+?)  ", line).group(1) for line in lines]  # type: ignore[union-attr]
    assert titles == [
        "reward",
        "learning signal",
        "policy movement",
        "exploration",
        "completions",
        "numbers",
        "critic",
        "pace and ending",
    ]
    entropy = next(line for line in lines if "exploration" in line)
    assert "entropy  " in entropy and re.search("[▁▂▃▄▅▆▇█]{26}", entropy)
    assert re.search(r"0\.\d+ → 0\.\d+ nats/token", entropy)
    assert "not for this trainer: no critic" in next(line for line in lines if "critic" in line)


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_why_a_sign_is_sick_or_unknown_is_never_cut(width: int, sick: Verdict, unknown: Verdict) -> None:
    for answer in (sick, unknown):
        text = " ".join(shown(answer, width=width).split())
        for one in vitals(answer.runs[0]):
            if one.state in ("sick", "watch", "unknown", "not logged"):
                assert " ".join(one.said.split()) in text


@pytest.mark.parametrize("width", [60, 70, 80, 100, 110, 130, 160])
def test_the_course_stands_on_each_line_that_has_one_at_any_width(width: int, sick: Verdict, healthy: Verdict) -> None:
    for answer in (sick, healthy):
        lines = shown(answer, width=width).splitlines()
        for one in vitals(answer.runs[0]):
            line = next(line for line in lines if re.match(rf" . {one.title}  ", line))
            assert not line.endswith("…")
            for first, *_ in [one.trend.split(",")] if words.courses(one) else []:
                assert re.search(rf"  {first}\b", line)


def test_a_sign_without_a_curve_hangs_below_its_words(unknown: Verdict) -> None:
    lines = shown(unknown, width=60).splitlines()
    place = next(place for place, line in enumerate(lines) if " completions  " in line)
    assert lines[place + 1].startswith(" " * 20) and lines[place + 1].strip()


def test_a_pipe_shows_the_vital_signs_where_all_is_asked_for(healthy: Verdict) -> None:
    assert "vital[" not in shown(healthy, piped=True)
    lines = [line for line in shown(healthy, piped=True, show_all=True).splitlines() if ": vital[" in line]
    assert len(lines) == 8 and ": vital[reward] unknown: reward " in lines[0]


def test_rules_that_could_not_look_are_counted_and_named_with_their_reason(healthy: Verdict) -> None:
    assert "11 rules: 7 quiet · 4 skipped" in shown(healthy)
    assert "value-loss-spike" not in shown(healthy), "rules in detail are for --all"
    text = " ".join(shown(healthy, show_all=True).split())
    assert "value-loss-spike (no loss/value_avg)" in text
    assert "kl-coef-rising (no objective/kl_coef)" in text


def test_rules_on_endings_and_causes_are_no_look_at_a_metric(healthy: Verdict) -> None:
    run = replace(healthy.runs[0], beside_metrics=frozenset(healthy.runs[0].quiet[:3]))
    assert "11 rules: 4 quiet on metrics · 3 on endings and causes · 4 skipped" in shown(Verdict([run]))


def test_a_cell_that_is_not_of_its_column_says_what_it_is_or_is_empty() -> None:
    def logged(name: str, tag: str, value: float) -> RunVerdict:
        run = Run(name, Place("table", f"{name}.csv"))
        run.add(tag, [1, 2, 3], [0.0, 0.0, value])
        return RunVerdict(run, translate(run), "finished")

    verdict = Verdict([logged("a", "reward", 0.25), logged("b", "reward", 0.5), logged("c", "loss", 0.75)])
    wide, narrow = (shown(verdict, width=width).split("\n") for width in (120, 80))
    [head] = [line for line in wide if "verdict" in line]
    assert "reward" in head and "loss" not in head
    assert [line for line in wide if " c " in line and "loss" in line and "0.75" in line]
    assert not [line for line in narrow if "0.75" in line]


def test_runs_of_one_name_are_listed_with_their_places() -> None:
    def logged(name: str, place: str) -> RunVerdict:
        run = Run(name, Place("table", place))
        run.add("reward", [1, 2, 3], [0.0, 0.0, 1.0])
        return RunVerdict(run, translate(run), "finished")

    text = shown(Verdict([logged("exp", "a/exp"), logged("exp (2)", "b/exp"), logged("other", "c/other")]))
    assert "exp: a/exp" in text and "exp (2): b/exp" in text and "c/other" not in text


def test_marks_of_vital_signs_are_explained_below_the_table(many: Verdict) -> None:
    text = " ".join(shown(many).replace("\u00a0", " ").split())
    assert "vitals reward, learning signal, policy movement" in text and "✓ well, ▲ watch, ✗ sick, ? unknown" in text


def test_thirty_runs_are_a_table_worst_first_with_the_healthy_folded(many: Verdict) -> None:
    lines = shown(many, width=100).splitlines()
    names = [line.split()[1] for line in lines if line[:2] in (" ✗", " ▲", " ?", " ✓")]
    assert names[:7] == ["lr3e-3_s0", "lr3e-3_s1", "lr3e-3_s2", "lr1e-3_s1", "no-rl-here", "runs/lr1e-4_s2", "24"]
    assert " Shared by several runs: no-group-signal ×4 · lengths-drop ×3 · step-size-too-big ×3" in lines
    assert lines[-2].startswith(" 30 runs: 24 healthy · 1 warning · 3 critical · 1 unknown · 1 unreadable")
    assert lines[-1].endswith("exit 1")
    unfolded = shown(many, show_all=True)
    assert all(f"lr3e-4_s{number} " in unfolded for number in range(24))


def test_an_error_comes_with_the_next_thing_to_try(nothing: Verdict) -> None:
    assert shown(nothing).splitlines() == [
        " ? no runs found in ./logs",
        "   try   looked for event files, *.wandb and trainer_state.json",
        "",
        f"{' no run could be read · fail-on critical':<74}exit 2",
    ]


def test_a_run_that_nothing_could_judge_is_unknown_and_says_why(unknown: Verdict) -> None:
    text = shown(unknown)
    assert text.startswith(" ? no-rl-here   unknown")
    assert "Unknown: no rule could run" in text
    assert "! 3 damaged lines skipped, the first at line 12" in text
    assert text.rstrip().endswith("exit 2")


@pytest.mark.parametrize("name", ANSWERS)
def test_quiet_is_the_closing_line_alone(name: str, request: pytest.FixtureRequest) -> None:
    verdict = request.getfixturevalue(name)
    full, quiet = shown(verdict, width=150), shown(verdict, width=150, quiet=True)
    assert full.endswith(quiet)
    assert quiet.count("\n") <= 2


@pytest.mark.parametrize("width", [40, 46, 59, 80, 101, 200])
@pytest.mark.parametrize("name", ANSWERS)
def test_no_line_is_wider_than_the_terminal_and_no_finding_is_lost(
    name: str, width: int, request: pytest.FixtureRequest
) -> None:
    verdict: Verdict = request.getfixturevalue(name)
    text = shown(verdict, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    if len(verdict.runs) == 1:
        assert all(one.rule[:4] in text for one in verdict.runs[0].findings)
    assert f"exit {verdict.exit_code}" in text


@pytest.mark.parametrize(
    "look",
    [
        {"width": 80},
        {"width": 80, "color": True},
        {"width": 80, "ascii": True},
        {"piped": True},
        {"show_all": True, "width": 120},
    ],
)
def test_nothing_from_a_log_can_steer_the_terminal(hostile: Verdict, look: dict[str, object]) -> None:
    text = shown(hostile, **look)
    ours = re.sub("\x1b\\[[0-9;]*m", "", text) if look.get("color") else text
    assert all(one.isprintable() or one in "\n\u202f\u00a0\u200d" for one in ours)
    assert "\u202e" not in ours
    assert "[bold red]markup[/]" in ours, "markup is shown as it is, never obeyed"


@pytest.mark.parametrize("name", ANSWERS)
def test_colour_adds_no_word_and_takes_none_away(name: str, request: pytest.FixtureRequest) -> None:
    verdict = request.getfixturevalue(name)
    assert re.sub("\x1b\\[[0-9;]*m", "", shown(verdict, color=True)) == shown(verdict)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("piped", [False, True])
def test_ascii_needs_no_other_alphabet(name: str, piped: bool, request: pytest.FixtureRequest) -> None:
    assert shown(request.getfixturevalue(name), ascii=True, piped=piped).isascii()


def test_a_sign_stands_apart_from_the_name_in_either_alphabet(many: Verdict) -> None:
    assert " !! lr3e-3_s0 " in shown(many, ascii=True)
    assert " ✗ lr3e-3_s0 " in shown(many)


def test_piped_is_one_whole_finding_a_line(sick: Verdict) -> None:
    lines = shown(sick, piped=True, width=40).splitlines()
    assert lines[0] == (
        "runs/polite-lr-jump: critical[step-size-too-big] step=81 value=9.4 limit=4: 3 findings share "
        "one cause: from step 81 each update moved the policy too far"
    )
    assert (
        lines[1] == "runs/polite-lr-jump: warning[grad-norm-spike] step=81 until=90 value=9.4 limit=4 "
        "cause=step-size-too-big: grad_norm reached 9.4 (limit 4)"
    )
    assert sum("[" in line for line in lines) == len(sick.runs[0].findings)
    assert lines[-1] == "1 run: 1 critical; 1 ignored, 4 rules skipped; fail-on critical; exit 1"


def test_piped_names_the_unreadable_and_keeps_every_name_whole(many: Verdict, hostile: Verdict) -> None:
    assert (
        "error: runs/lr1e-4_s2: the event file is empty (delete it, or wait until the run writes)"
        in shown(many, piped=True).splitlines()
    )
    text = shown(hostile, piped=True)
    assert "x" * 10_000 in text
    findings = sum(len(run.findings) for run in hostile.runs)
    assert len([line for line in text.splitlines() if " step=" in line]) == findings


def test_each_format_has_its_module_and_an_unknown_one_is_an_error_with_a_hint(healthy: Verdict) -> None:
    assert all(write(healthy, name).endswith("\n") for name in REPORTS)
    with pytest.raises(Exception, match="no report format 'pdf'") as caught:
        write(healthy, "pdf")
    assert "terminal" in caught.value.hint  # type: ignore[attr-defined]
