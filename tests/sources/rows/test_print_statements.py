"""The lines that training loops print with statements of their own are rows: every test runs the statement."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.rows import Rows

COUNT = 30
REWARDS = [round(0.1 + 0.02 * n + 0.03 * (n % 3), 3) for n in range(COUNT)]


def log(tmp_path: Path, text: str) -> Run:
    path = tmp_path / "train.log"
    path.write_text(text)
    (run,) = open_runs(str(path))
    return run


def printed(tmp_path: Path, line: Callable[[int, float], str]) -> Run:
    return log(tmp_path, "".join(line(n, reward) + "\n" for n, reward in enumerate(REWARDS)))


def values(run: Run, metric: str) -> tuple[list[int], list[float]]:
    found = translate(run).metrics[metric]
    return found.steps.tolist(), found.values.tolist()


@pytest.mark.parametrize(
    "line",
    [
        lambda n, r: f"  Ep {n * 10:6d}/300 | BailAcc: {n}.5% | Rew: {r:.3f} | eps: 0.9",
        lambda n, r: f"Episode {n * 10} | Step {37 + 91 * n % 50}\tReward {r}\tAvgReward {r + 1}\t172",
        lambda n, r: f"[step {n * 10:4d}] reward_mean={r:.3f} reward_best=0.9 loss=1.25",
        lambda n, r: f"[EPISODE] {n * 10:3d} total_reward={r:.3f} steps={20 + n * 7 % 13}",
        lambda n, r: f"[{n // 60:02d}:{n % 60:02d}][Ep   {n * 10}] loss: 0.5, reward: {r:.3f}",
        lambda n, r: f"Evaluation at step {n * 10}:\n  Mean Reward: {r:.3f} +/- 0.25\n  Best: 0.9\n",
        lambda n, r: f"\n[Step {n * 10}] the state of training:\n>>> Loss: 0.5\n>>> Reward: {r:.3f}",
        lambda n, r: f"Ep. {n * 10}, Ep.Timesteps {20 + n * 37 % 81}, Score: {r:.3f}, Time: 00:00:{n:02d} ",
        lambda n, r: f"episode  {n * 10} score {r + 1:.3f} average score {r:.3f} epsilon 0.97",
        lambda n, r: f"step {n * 10:4d}/600  loss  1.42  reward {r:.3f}  kl 0.0033  lr 3.00e-04  2.2s",
        lambda n, r: f"Update {n * 10}: mean reward {r:.3f}; policy loss -0.0085; value loss 1.4560; entropy 1.4",
        lambda n, r: f"Iter {n * 10:4d} -> mean return {r:.3f} (std 20.8), loss 1.35",
        lambda n, r: f"Episode {n * 10} finished with reward {r:.3f} after 20 steps",
        lambda n, r: f"Episode  {n * 10} finished with reward: {r:.3f}\nFinished at timestep  {20 + n}",
        lambda n, r: f"Timestep {n * 10}\nmean reward (100 episodes) {r:.6f}\nbest mean reward -inf\nepisodes {n}\n",
        lambda n, r: f"Reward after {n * 10} episodes is {r:.3f}",
        lambda n, r: f"  [grpo] step {n * 10:3d}/600  mean_reward {r:.3f}  informative_groups={n % 8}/8",
        lambda n, r: (
            f"[dr-s1] step {n * 10:3d} reward {r:.3f} len 352 (c 324.9 / i 397.6) sig 6/16 roll 36s peak 11.38GB"
        ),
        lambda n, r: f"episode {n * 10:5d}  steps {20 + n:4d}  total_reward {r:8.3f}  loss   2.1725  stage1-launch",
        lambda n, r: f"{n * 10}th cur_reward, cur_loss:  {r} 36.035667419433594",
        lambda n, r: f"Episode: {n * 10:4d}    Mean of recent rewards: {r:7.3f}",
        lambda n, r: (
            f"Episode {n * 10:5d}   Avg: {r:7.3f}   BestAvg:    -inf   σ:   54.36   |   ε: 0.6058   Steps: {47 * n}"
        ),
        lambda n, r: f"Average score after episode {n * 10}: {r:.3f}, epsilon: 0.5",
        lambda n, r: f"After {n * 10} episodes, mean return is {r:.3f}.",
        lambda n, r: f"Episode {n * 10} finished after 20 timesteps, total reward {r:.3f}",
        lambda n, r: f"EP{n * 10} EpisodeReward={r:.3f}",
        lambda n, r: f"Step: {n * 10}\t Average reward: {r:.4f} ... Current Reward: {r + 1:.2f}\t sigma: 0.9",
        lambda n, r: f"iter{n * 10}: loss 0.5, reward {r:.3f}, length 20",
        lambda n, r: f"Episode {n * 10} ended with score {r:.3f}, average score over the last 100 episodes: 0.5",
        lambda n, r: f"Episode Num: {n * 10} Episode T: {n * 7 % 13} Reward: {r:.3f}",
        lambda n, r: f"{n * 10}: reward: {r:6.3f}, mean_100_rewards: {r + 1:.2f}",
        lambda n, r: f"Эпизод {n * 10}: 4 шагов, reward={r:.3f}",
        lambda n, r: f"第 {n * 10} 轮：reward: {r:.3f}，loss: 0.5",
        lambda n, r: f"回合 {n * 10}/800, 奖励: {r:.3f}, 损失: 0.5",
        lambda n, r: f"Episodio {n * 10} - Recompensa media: {r:.3f} - Épsilon: 0.400",
        lambda n, r: f"✅ 에피소드 {n * 10} 완료\n   총 보상: {r:.3f}\n   스텝 수: 100",
        lambda n, r: f"Ep {n * 10:6d} | R: {r:7.3f} | ε: 0.9 | 300 eps/h",
        lambda n, r: f"Ep {n * 10}\tR={r:.3f}\teps=0.3",
        lambda n, r: f"Iter {n * 10:>3} | reward {r:.3f}",
        lambda n, r: f">>> Episode {n * 10}: reward -> {r:.3f}",
        lambda n, r: f"Game {n * 10} Score {r:.3f} Record: 30",
        lambda n, r: f"episode: {n * 10} reward {r:.3f} steps:  200",
        lambda n, r: f"Episode  {n * 10},   Score  {r:.3f},   Epsilon 0.30",
        lambda n, r: f"step {n * 10} loss 0.01 r_mean {r:.3f} r_std 0.3 kl 0.003",
        lambda n, r: f"[Ep {n * 10:03d}] avg_ret={r:.3f} avg_loss=0.1 watch=0.50",
        lambda n, r: f"finished episode {n * 10} with mean score {r:.3f}",
        lambda n, r: f"iter {n * 10}. reward: {r:.3f}. total_time: 3.100000.",
        lambda n, r: f"Episode {n * 10}: Return {r:.3f} averaged on 12 episodes.",
        lambda n, r: (
            f"[{n:5.1f}%] Ep {n * 10:5d}/900 | Steps {n * 2000:8,} | R= {r:7.3f} | Avg10= {r:7.3f} | Best= 200.0"
        ),
        lambda n, r: f"[sweep] task=puzzle eval step={n * 10} reward={r:.3f}",
        lambda n, r: f"[11-11 23:11:18 MainThread @train.py:91] Episode {n * 10}, Reward Sum {r:.3f}.",
        lambda n, r: f"Episode {n * 10}/400 | Reward moyen (100 ep): {r:.3f}",
        lambda n, r: f"Episode {n * 10}\tLast length:    23\tAverage length: {r:.3f}",
        lambda n, r: f"{n * 10} Episode: Finished after 23 steps：10 step average = {r:.3f}",
        lambda n, r: f"{n * 10} Episode: Finished after 23 steps : 최근 10 에피소드의 평균 단계 수 = {r:.3f}",
        lambda n, r: f" {n * 10:3d} reward {r - 9:6.2f}/{r:6.3f}/{r + 9:6.2f} len {200:6.2f} saved /tmp/checkpoint_{n}",
        lambda n, r: f"Episode {n * 10} finished. Outcome: [1], reward: {[np.float32(r)]}, score: [9]",
        lambda n, r: f"Episode {n * 10}: Score = {np.array([[r]])}",
        lambda n, r: f"[step {n * 10}/300] rewards={[f'{r - 0.1:.3f}', f'{r + 0.1:.3f}']} loss=0.01 wasted=0",
        lambda n, r: f"Episode {n * 10} | Rewards: {np.array([r - 0.25, r + 0.25])}",
        lambda n, r: f"step {n * 10} | rewards (2 completions): {[r - 0.5, r + 0.5]}",
        lambda n, r: f"{ {'step': n * 10, 'rewards': [r - 0.5, r + 0.5], 'loss': 0.5} }",
        lambda n, r: str(pd.Series({"timesteps": n * 10.0, "wall_time": 1.5, "mean_episode_rewards": r}, name=n)),
        lambda n, r: (
            f" Step | Reward   | Notes\n{'-' * 40}\n" * (n == 0) + f" {n * 10:4} | {r:.4f} | {'' if n % 9 else 'best'}"
        ),
        lambda n, r: f"Evaluation at step {n * 10}: {r:.3f} +/- 0.25",
        lambda n, r: f"[{n * 10}] train_return {r:.3f} / train_length 500.0 / fps 30.0",
        lambda n, r: (
            f"[2025-07-01 15:07:04,200][43233] Fps is (10 sec: 613.2, 60 sec: 204.8, 300 sec: nan). Total num frames: {n * 10}."
            " Throughput: 0: 146.2. Samples: 104274. Policy #0 lag: (min: 5.0, avg: 5.0, max: 5.0)\n"
            f"[2025-07-01 15:07:04,200][43233] Avg episode reward: {[(0, f'{r:.3f}'), (1, '9.500')]}"
        ),
        lambda n, r: f"***** Episode {n * 10} reward {r:.3f} *****",
        lambda n, r: f"episode {n * 10} score{r:.3f} average score -2.2 best score 1.75",
        lambda n, r: f"Episode {n * 10}\tFrame {n * 37} \tAverage100 Score: {r:.3f}",
        lambda n, r: (
            f"INFO:tensorflow:Starting iteration {n * 10}\n"
            f"INFO:tensorflow:Average undiscounted return per training episode: {r:.3f}\n"
            f"INFO:tensorflow:Average undiscounted return per evaluation episode: {r + 1:.3f}"
        ),
        lambda n, r: f"updates {n}/80 episodes, total num timesteps {n * 10}/800, FPS 12.\n\naverage reward is {r:.3f}",
        lambda n, r: f"Episode: {n * 10}\nMean reward of last 100 episodes: {r:.3f}",
        lambda n, r: f"Ep: {n * 10} | --- | ep_r: {r:.3f} | step: 37",
        lambda n, r: f"Ep: {n * 10} |Ep_r: {r:.3f} |Lam: 1.6479",
        lambda n, r: f"Ep: {n * 10} , Tm: 53 Rwd: {r:.3f}",
        lambda n, r: f"EPISODE {n * 10} {r:.3f}",
        lambda n, r: f"Episode {n * 10}: {r:.3f}",
        lambda n, r: f"Reward {r:.3f} for game {n * 10}",
        lambda n, r: f"Episode # {n * 10}  score {r:.3f} average score 1.75",
        lambda n, r: f"2024-05-14 14:55:31,662 INFO Episode {n * 10} DONE: reward={r:.3f} steps=24 done=False",
        lambda n, r: f"05/15/2024 07:30:05 AM Ep: {n * 10} Reward:{r:.3f}",
        lambda n, r: f"INFO:root:Episode #{n * 10} finished. Return: {r:.3f}, steps: 20",
        lambda n, r: f"ep: {n * 10}, run avg returns: {r:.3f}, run avg time steps: 32.00, loss: 1.14",
        lambda n, r: f"{n * 10} Episode finished after {20 + n}.000000 time steps / mean {r:.6f}",
        lambda n, r: (
            f"Updates {n * 10}, num timesteps {n * 80}, FPS 955, mean/median reward {r:.3f}/22.1, min/max reward -5/36.8"
        ),
        lambda n, r: f"Generation {n * 10}/600 | Best: 9.5 | Avg: {r:.3f}",
        lambda n, r: f"[Gen {n * 10}] Best: 9.78 | Mean: {r:.3f}",
        lambda n, r: f"Generation {n * 10}: Best Fitness: 9.424037, Mean Fitness: {r:.6f}",
        lambda n, r: "Episode\tReward\tAvg Reward (last 100)\n---------------\n" * (n == 0) + f"{n * 10}\t{r:.3f}\t0.5",
        lambda n, r: (
            "Update   Steps        AvgRew     MaxRew     FPS        Time    \n-------------------------------\n"
            * (n == 0)
            + f"{n * 10:<8} {40960 + n:<12,} {r:<10.3f} {9.0:<10.2f} {2807:<10} {14 + n}s"
        ),
        lambda n, r: (
            "     EP    Reward   DropRate      Loss       ε\n  ─────────────────────────────\n" * (n == 0)
            + f"  {n * 10:5d}   {r:7.3f}     14.0%   0.00000  1.0000  [{n}s]\n"
            + "  ✅ DDQN saved → models/ddqn_best.keras\n                  models/ddqn_best_target.keras" * (n % 3 == 0)
        ),
        lambda n, r: "│ step │ reward │\n├──────┼────────┤\n" * (n == 0) + f"│ {n * 10:4d} │ {r:.3f}  │",
        lambda n, r: (
            f"{'Frames':>9} | {'Upd':>4} | {'Mean100':>7}\n--------------------------\n" * (n == 0)
            + f"{n * 10:9d} | {n:4d} | {r:7.3f}"
        ),
    ],
)
def test_a_line_gives_the_reward_of_the_step_that_it_names(tmp_path: Path, line: Callable[[int, float], str]) -> None:
    run = printed(tmp_path, line)
    metrics = translate(run).metrics
    name = "reward" if "reward" in metrics else "eval/reward"
    assert values(run, name) == ([n * 10 for n in range(COUNT)], pytest.approx(REWARDS))


def test_a_table_of_samples_that_an_example_prints_is_no_heading_of_rows(tmp_path: Path) -> None:
    rule = f"\n{'-' * 40}\n"
    run = printed(tmp_path, lambda n, r: f"| end of epoch {n:3d} | time: 78.26s | reward {r:6.3f}{rule}")
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_the_reward_of_the_last_episodes_counts_no_steps_if_it_is_a_whole_number(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Episode: {n * 10}\nMean reward of last 100 episodes: {1000 * r:.0f}")
    assert values(run, "reward") == ([n * 10 for n in range(COUNT)], pytest.approx([1000 * r for r in REWARDS]))


def test_the_generations_of_samples_count_no_steps(tmp_path: Path) -> None:
    run = printed(
        tmp_path, lambda n, r: f"Generation 1: a text\nGeneration 2: another\nstep {n * 10} reward {r:.3f} kl 0.1"
    )
    assert values(run, "reward") == ([n * 10 for n in range(COUNT)], pytest.approx(REWARDS))


def test_the_spread_of_a_group_is_read_beside_its_mean_and_that_of_an_episodes_agents_is_not(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"[step {n}/30] loss=0.1 rewards={[r - 0.5, r + 0.5]}")
    assert values(run, "reward_std")[1] == pytest.approx([0.5] * COUNT)
    run = printed(tmp_path, lambda n, r: f"Episode {n} | Rewards: {np.array([r - 0.5, r + 0.5])}")
    assert "reward_std" not in translate(run).metrics


@pytest.mark.parametrize(
    "line",
    [
        "Step {0}: rewards: [0.5, 1.0]",  # those of an environment's copies
        "time: 1.0s rewards: [0.5, 1.0]",
        "Episode {0} | Rewards: [0.5, high]",
        "Episode {0} | Reward weights: [0.5, 1.0]",
        f"Episode {{0}} | Rewards: {[0.5] * 65}",
    ],
)
def test_other_lists_on_a_line_are_no_rewards(tmp_path: Path, line: str) -> None:
    with pytest.raises(RlhealthError):
        log(tmp_path, "".join(line.format(n) + "\n" for n in range(COUNT)))


def test_the_steps_of_a_solution_are_no_headings(tmp_path: Path) -> None:
    prose = "Step 1: Add the two numbers:\nStep 2: Evaluate the sum...\nStep 3: Simplifying the fraction...\n"
    run = printed(tmp_path, lambda n, r: f"{prose}{{'loss': 0.5, 'reward': {r}, 'kl': 0.{n}}}")
    assert values(run, "reward") == (list(range(1, COUNT + 1)), pytest.approx(REWARDS))


@pytest.mark.parametrize(
    "line",
    [
        "Reward for episode {n}: {r}",
        "reward in controller episode  {n} :  {r}",
        "Total reward in the episode {n} = {r}",
        "Mean return at iteration {n} is {r}",
        "Average reward of training episode {n}: {r}, steps: 200",
        "The average reward for episode {n} is {r}",
    ],
)
def test_the_reward_of_a_count_that_its_name_holds_is_one_metric(tmp_path: Path, line: str) -> None:
    run = printed(tmp_path, lambda n, r: line.format(n=n, r=f"{r:.3f}"))
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))


def test_what_is_said_with_a_word_before_its_colon_is_a_row(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"[2021-02-08 11:06:21.069528] epoch is: {n}, eval success rate is: {r:.3f}")
    assert values(run, "eval/reward")[1] == pytest.approx(REWARDS)


def test_names_of_several_words_that_end_in_what_is_measured_need_no_separators(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"mean reward {r} min reward -331.09 max reward {n}.5 max total reward 77.5")
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_a_count_with_thousands_is_one_number(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Timesteps: {n * 500:,} | Episodes: {n:,} | Mean Reward: {r:.3f} | FPS: 554")
    assert values(run, "reward") == ([n * 500 for n in range(COUNT)], pytest.approx(REWARDS))


def test_the_statistics_of_one_reward_are_distinguished(tmp_path: Path) -> None:
    run = printed(
        tmp_path,
        lambda n, r: (
            f"Updates {n}, num timesteps {n * 80}, FPS 472\n"
            f" Last 10 training episodes: mean/median reward {r:.3f}/{r + 1:.1f}, min/max reward 0.1/9.5\n"
        ),
    )
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))


def test_bare_numbers_before_rows_may_be_counts_of_frames(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"{n * 1500}: done {n} games, reward {r:.3f}, eps 0.5, speed 120.5 f/s")
    assert values(run, "reward") == ([n * 1500 for n in range(COUNT)], pytest.approx(REWARDS))


def test_bare_numbers_that_come_again_are_those_of_processes(tmp_path: Path) -> None:
    lines = [f"{rank}: reward: {reward + rank:.3f}, loss: 0.5\n" for reward in REWARDS for rank in range(4)]
    run = log(tmp_path, "".join(lines))
    assert values(run, "reward")[1] == pytest.approx(REWARDS)
    assert any("of other processes" in note for note in run.notes)


@pytest.mark.parametrize(
    "line",
    [
        "In step 3 we add 5 and 7 to the reward 12",
        "The agent finished with reward 12 after 3 steps.",
        "so the score of 5 is what the return of 3 gives",
        "reward 5 is what 3 more give and 12 is enough",
        "Step 3: Her total score is 85, with a bonus score of 5.",
        "Step 3, the reward is 12, so the score is 5",
        "Round 3 ends with score 85, and the average score is 12",
        "The average score is 12.",
        "The final score 12 and the first score 7 are given",
        "Her score is 85 and his score is 90",
        "x is 5 and y is 3",
        "After 3 games, average score is 12",
        "After 3 steps the reward is 12",
        "The score after 3 games is 12",
        "Step 3. Add the scores",
        "model_1 score_2 loss_3",
        "3 -> 5, and the reward 12",
        "Score 12",
        "#3 score",
    ],
)
def test_prose_is_no_row(tmp_path: Path, line: str) -> None:
    with pytest.raises(RlhealthError):
        log(tmp_path, f"{line}\n" * COUNT)


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        (lambda n, r: f"Episode {n:5d}: Win Rate {r:.3f} (Recent: 0.055), Epsilon: 0.9, Loss: 1.2", "reward"),
        (lambda n, r: f"  Ep {n:4d} | Train R={r:+.3f} | Eval R=+0.100 | Partial=0.310", "reward"),
        (lambda n, r: f"  Ep {n:4d} | Train R=+0.100 | Eval R={r:+.3f} | Partial=0.310", "eval/reward"),
        (lambda n, r: f"[sweep] task=puzzle eval step={n} mean@1={r}", "eval/reward"),
        (lambda n, r: f"{'-' * 39}\nEvaluation over 10 episodes: {r:.3f}\n{'-' * 39}", "eval/reward"),
        (
            lambda n, r: f"total steps {n + 1}, returns {r:.3f}/0.10/-1.00/9.50 (mean/median/min/max), 900.50 steps/s",
            "reward",
        ),
        (lambda n, r: f"2019-12-27 16:34:13,281 - root - INFO: steps {n + 1}, episodic_return_train {r}", "reward"),
        (lambda n, r: f"steps {n + 1}, episodic_return_test {r:.3f}(0.33)", "eval/reward"),
        (lambda n, r: f"Episode {n + 1} (76.2s)\tAverage Max Score: {r:.4f}, Best of last 10 runs: 0.09", "reward"),
        (lambda n, r: f"Episode {n + 1:4d}\tLast score:  0.10 ( 0.10 / -0.01)\tMoving average: {r:.3f}", "reward"),
        (lambda n, r: f"Episodes {n:04d}-{n + 1:04d}\tMax Reward: 0.100\tMoving Average: {r:.3f}", "reward"),
        (lambda n, r: f"update {n + 1}, avg return per episode: {r:.3f}", "reward"),
        (lambda n, r: f"resetting env. episode reward total was {r:.6f}. running mean: -20.500000", "reward"),
        (lambda n, r: f"batch_{n} score_{r} avg_loss_1.18 avg_td2_1.27", "reward"),
        (lambda n, r: f"Episode * {n} * Avg Reward is ==> {r}", "reward"),
        (lambda n, r: f"Total reward this episode: {r}", "reward"),
        (lambda n, r: f"episode: {n}, avarage_score: {r}", "reward"),
        (lambda n, r: f"Steps: {n:04d} | Reward: {r}\t", "reward"),
        (lambda n, r: f"Rollout n°{n} / {COUNT}\nScore: {r}\nNew best score: {r} saving model.\n", "reward"),
        (lambda n, r: f"update: {n}, total steps: {n * 80}\nmean/median reward: {r:.3f}/19.3\n", "reward"),
        (lambda n, r: f"2021-10-04 15:24:52.321 | INFO     | __main__:train:17 - Episode {n}: score {r}", "reward"),
        (lambda n, r: f"episode: {n:5d}; final reward (best): {r:.3f} ({r}); epsilon: 1.000", "reward"),
        (lambda n, r: ('{\n  "gamma": 0.9\n}Built the network!\n' if not n else "") + f"Ep: {n}, Rew: {r}", "reward"),
        (lambda n, r: f"  {n * 100} mean training reward:  {r}", "reward"),
        (lambda n, r: f"{n} -> Episode reward:  {r}", "reward"),
        (lambda n, r: f"#{n} reward {r}", "reward"),
        (lambda n, r: f"{n}/{COUNT} episode, reward: {r}", "reward"),
        (lambda n, r: f"Episode reward {r}", "reward"),
        (lambda n, r: f"episode reward:\t{r:.4f}|", "reward"),
        (lambda n, r: f"reset! episode reward is {r}", "reward"),
        (lambda n, r: f"Got reward {r} in episode {n}", "reward"),
        (lambda n, r: f"Reward for this episode: {r}", "reward"),
        (lambda n, r: f"Episode {n}: {r:.3f} (avg 25.88)", "reward"),
        (lambda n, r: f"Episode {n}: Reward {r:.3f}±4.10, Eval 28.11", "reward"),
        (lambda n, r: f"Episode {n}: Reward {r:.3f} +/- 4.10", "reward"),
        (lambda n, r: f"Episode {n} --- Total Reward {r:.3f} --- Steps 33", "reward"),
        (lambda n, r: f"Episode {n} >> reward {r:.3f}", "reward"),
        (lambda n, r: f"Episode {n}/60 finished, total reward  : {r:.3f}, actions taken : 23", "reward"),
        (lambda n, r: f"Episode {n} total reward {r:.3f} in 33 steps", "reward"),
        (lambda n, r: f"Episode done. Total score: {r:.3f}", "reward"),
        (lambda n, r: f"Update {n}/60 collected 2048 steps. Mean reward: {r:.3f}", "reward"),
        (lambda n, r: f"Iteration {n}/60: Reward Sum for this iteration = {r:.3f}, Num Env Episodes = 12", "reward"),
        (lambda n, r: f"  Ep  {n * 50 + 1}-{n * 50 + 50}: Success 4.5% | Reward {r:.3f}", "reward"),
        (lambda n, r: f"Episode: {n * 50} Avg Results: {r} Epsilon: 0.95", "reward"),
        (lambda n, r: f"Epoch: {n * 5} Avg Result: {r}", "reward"),
        (lambda n, r: f"Average Validation Reward after iteration {n}: {r:.3f}", "eval/reward"),
        (lambda n, r: f"=====\n  EPOCH {n + 1}/80 SCORECARD\n=====\n  Correct:   35/512 ({100 * r:.1f}%)", "reward"),
    ],
)
def test_a_line_of_another_shape_gives_the_number_that_its_name_tells(
    tmp_path: Path, line: Callable[[int, float], str], metric: str
) -> None:
    assert values(printed(tmp_path, line), metric)[1] == pytest.approx(REWARDS)


def test_what_stands_above_a_line_of_an_evaluation_is_not_of_it(tmp_path: Path) -> None:
    run = printed(
        tmp_path, lambda n, r: f"Episode {n}: reward = {r}\n\tTD loss = {r}\nEvaluation: return = {r}; len = 5"
    )
    assert {"TD loss", "eval/return"} <= run.series.keys()


def test_lines_that_are_printed_to_a_file_called_csv_are_read_as_printed(tmp_path: Path) -> None:
    lines = (f"Episode {n}, Last State: [  1.  69. 100.], Reward: {r}\n" for n, r in enumerate(REWARDS))
    (tmp_path / "episode_rewards.csv").write_text("".join(lines))
    (run,) = open_runs(tmp_path)
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))


def test_a_reward_below_zero_behind_its_episode_is_no_end_of_a_range(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Episode {n} -{20 + n % 7}, loss: {r}")
    assert run.series["loss"].steps.tolist() == list(range(COUNT))


def test_the_share_behind_a_count_of_steps_is_no_metric(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Iteration: {n}/{COUNT} ({n / COUNT:.1%})\nReward: {r:.3f}\nLength: 20")
    assert run.series.keys() == {"Reward", "Length"}


def test_an_indented_dict_is_a_row_of_the_epoch_above_it(tmp_path: Path) -> None:
    def lines(n: int, r: float) -> str:
        trained, rolled = {"Loss": 1 - r, "Time": 0.5}, {"Horizon": 300.0, "Return": r, "Env": "lift"}
        rows = (json.dumps(row, indent=4) for row in (trained, rolled))
        return f"Train Epoch {n + 1}\n{next(rows)}\n\nEpoch {n + 1} took 12s, with results:\n{next(rows)}"

    run = printed(tmp_path, lines)
    assert values(run, "reward")[1] == pytest.approx(REWARDS)
    assert values(run, "loss")[1] == pytest.approx([1 - r for r in REWARDS])


def test_the_braces_of_source_code_begin_no_dict(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"int main() {{\n  return 0;\nEpisode {n}: reward: {r}, loss: 0.5\n}}")
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_a_count_of_steps_that_jumps_up_and_down_is_the_length_of_an_episode(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"  {n}: Steps: {20 + n * 37 % 101:8d} | Avg reward: {r:8.3f} | eps: 0.5")
    assert values(run, "reward") == (list(range(1, COUNT + 1)), pytest.approx(REWARDS))


def test_the_lines_below_the_heading_of_a_step_are_one_row(tmp_path: Path) -> None:
    run = printed(
        tmp_path,
        lambda n, r: f"\nUpdate {n}/30\nStats - Success: 10.5%, Avg Return: {r}\nLoss: 1.5, Policy Loss: -0.02",
    )
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))
    assert values(run, "loss/policy_avg") == (list(range(COUNT)), [-0.02] * COUNT)


def test_lines_without_separators_below_the_count_of_steps_are_one_row(tmp_path: Path) -> None:
    run = printed(
        tmp_path,
        lambda n, r: f"Timestep {n * 1000}\nmean reward (100 episodes) {r:.6f}\nepisodes {n}\nexploration 0.{90 - n}\n",
    )
    assert values(run, "reward") == ([n * 1000 for n in range(COUNT)], pytest.approx(REWARDS))
    assert values(run, "policy/exploration_rate") == (
        [n * 1000 for n in range(COUNT)],
        pytest.approx([0.9 - 0.01 * n for n in range(COUNT)]),
    )


def test_a_dict_of_other_metrics_within_a_block_is_part_of_its_row(tmp_path: Path) -> None:
    run = printed(
        tmp_path,
        lambda n, r: (
            f"-----\nSteps: {n * 1000}\nAverageReturn: {r}\nOtherLogs: {{'LossPi': -0.5, 'KL': 0.0{n}}}\nTime: {n}"
        ),
    )
    assert values(run, "reward") == ([n * 1000 for n in range(COUNT)], pytest.approx(REWARDS))
    assert values(run, "loss/policy_avg") == ([n * 1000 for n in range(COUNT)], [-0.5] * COUNT)


def test_a_training_without_steps_before_the_counted_episodes_of_a_test_is_a_run_of_its_own(tmp_path: Path) -> None:
    training = "".join(
        f"\nInterval {n + 1} ({n * 10000} steps performed)\n10000/10000 [=====] - 66s 7ms/step - reward: -7.3978\n"
        f"50 episodes - episode_reward: {reward} [-9.000, 9.000] - loss: 5.522 - mae: 0.455 - mean_q: -31.851\n"
        for n, reward in enumerate(REWARDS)
    )
    test = "".join(f"Episode {n}: reward: {200 + n}.000, steps: 200\n" for n in range(1, 6))
    path = tmp_path / "train.log"
    path.write_text(f"Training for 300000 steps ...{training}done, took 304.161 seconds\n{test}")
    trained, tested = open_runs(path)
    assert values(trained, "reward") == (list(range(1, COUNT + 1)), pytest.approx(REWARDS))
    assert values(tested, "reward") == ([1, 2, 3, 4, 5], [201, 202, 203, 204, 205])
    assert not any("numbered" in note for note in tested.notes)


def test_a_test_that_is_printed_while_the_log_is_followed_is_a_run_of_its_own_too() -> None:
    rows = Rows(lambda number: Run(f"run {number}", Place("console", "here")))
    rows.take({"episode_reward": reward, "loss": 0.5} for reward in REWARDS)
    rows.flush()
    rows.take({"episode": n, "reward": 200.0 + n, "steps": 200.0} for n in range(1, 6))
    rows.flush()
    assert [set(run.series) for run in rows.runs] == [{"episode_reward", "loss"}, {"reward", "steps"}]
    assert rows.runs[1].series["reward"].steps.tolist() == [1, 2, 3, 4, 5]


def test_an_evaluation_that_names_a_step_between_rows_that_name_none_begins_no_run() -> None:
    rows = Rows(lambda number: Run(f"run {number}", Place("console", "here")))
    rows.take({"reward": reward, "loss": 0.5} for reward in REWARDS)
    rows.flush()
    rows.take([{"step": 30, "eval/reward": 0.5}, {"reward": 0.75, "loss": 0.25}])
    rows.flush()
    (run,) = rows.runs
    assert run.series["reward"].values.tolist() == pytest.approx([*REWARDS, 0.75])


@pytest.mark.parametrize(
    "remark",
    [
        "\t<---- what it was paid (higher=better)",
        "  <-- what it was paid",
        " <== paid",
        "  ← what it was paid",
        "  # what it was paid",
        "  // what it was paid",
    ],
)
def test_a_remark_behind_a_number_is_no_part_of_it(tmp_path: Path, remark: str) -> None:
    run = printed(tmp_path, lambda n, r: f"------ STEP {n} ------\nscores/mean:\t{r}{remark}\nkl:\t0.5{remark}\n")
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))
    assert run.series["kl"].values.tolist() == [0.5] * COUNT


@pytest.mark.parametrize("sign", ["<-", "#", "//"])
def test_what_stands_behind_a_sign_and_has_a_number_itself_is_no_remark(tmp_path: Path, sign: str) -> None:
    run = printed(tmp_path, lambda n, r: f"Step: {n} {sign} Loss: 0.5 {sign} Reward: {r}")
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))


def test_source_code_with_comments_is_no_row(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError):
        log(tmp_path, "def train():\n    reward = 0.0  # what it was paid\n    kl = 0.5  # in nats\n    go()\n" * COUNT)


def test_several_rollouts_below_the_heading_of_a_step_are_not_its_reward(tmp_path: Path) -> None:
    rollouts = "Length: 31, Score: 0.25\nLength: 35, Score: 0.75\n"
    run = printed(tmp_path, lambda n, r: f"=== Step {n} ===\n{rollouts}Loss: 1.5, KL: {r}")
    assert "Score" not in run.series
    assert len(run.series["KL"]) == COUNT


def test_a_log_that_grows_is_read_as_one_that_was_whole(tmp_path: Path) -> None:
    from rlhealth.sources.rows.console import ConsoleLog

    rollout = "Length: 3{0}, Score: 0.2{0}\n"
    first = "=== Step 1 ===\n" + rollout.format(1) + "Loss: 1.5, KL: 0.25\n"
    rest = "".join(f"=== Step {n} ===\n{rollout.format(1)}{rollout.format(2)}Loss: 1.5, KL: 0.{n}\n" for n in (2, 3, 4))
    path = tmp_path / "train.log"
    path.write_text(first)
    followed = ConsoleLog(path)
    followed.poll()
    assert "Score" in followed.runs[0].series  # one a step, as far as anybody can tell
    path.write_text(first + rest)
    followed.poll()
    whole = log(tmp_path, first + rest)
    assert (
        {tag for tag, series in followed.runs[0].series.items() if len(series)} == whole.series.keys() == {"Loss", "KL"}
    )


def bar(told: Callable[[float], dict[str, object]], *, desc: str | None = None) -> str:
    """What a real progress bar draws around the steps of a loop."""
    drawn = io.StringIO()
    steps = tqdm(REWARDS, file=drawn, mininterval=0, desc=desc)
    for reward in steps:
        steps.set_postfix(told(reward))
    return drawn.getvalue() + "\n"


@pytest.mark.parametrize("desc", [None, "Training"])
@pytest.mark.parametrize("name", ["reward", "avg_reward", "rew"])
def test_a_progress_bar_that_tells_the_reward_alone_gives_one_row_a_step(
    tmp_path: Path, name: str, desc: str | None
) -> None:
    run = log(tmp_path, bar(lambda reward: {name: reward}, desc=desc))
    assert run.series.keys() == {name}
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_what_a_progress_bar_shows_twice_is_read_once_and_what_stays_is_read_on(tmp_path: Path) -> None:
    run = log(tmp_path, bar(lambda reward: {"loss": f"{reward:.3f}", "reward": "0.0"}))
    assert run.series["loss"].values.tolist() == pytest.approx(REWARDS)
    still = log(tmp_path, bar(lambda reward: {"loss": "0.0", "reward": "0.0"}))
    assert len(still.series["reward"]) >= COUNT // 2


def test_the_progress_of_an_evaluation_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError):
        log(tmp_path, bar(lambda reward: {"acc": reward}, desc="Evaluating"))


def test_a_prefix_that_says_evaluation_behind_that_of_a_logger_counts(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"2025-06-15 15:06:40,000 - train - INFO - [eval] step={n} reward={r}")
    assert values(run, "eval/reward")[1] == pytest.approx(REWARDS)


def test_what_stands_in_brackets_before_a_bar_is_read(tmp_path: Path) -> None:
    drawn = "".join(
        f"\rEpoch 1/3 (reward {r:.4f}):  10%|█         | {n + 1}/{COUNT} [00:{n:02d}<01:20,  1.01it/s]"
        for n, r in enumerate(REWARDS)
    )
    assert values(log(tmp_path, f"{drawn}\n"), "reward")[1] == pytest.approx(REWARDS)


def test_between_bars_of_losses_a_line_of_rewards_has_the_step_of_its_bar(tmp_path: Path) -> None:
    """As trlX draws them, with the title of its table of answers, and what DeepSpeed prints behind a bar."""
    drawn = io.StringIO()
    progress = tqdm(total=COUNT, file=drawn, mininterval=0, miniters=1)
    for n, reward in enumerate(REWARDS):
        losses = {"losses/total_loss": 1 / (n + 1), "losses/policy_loss": 0.5 - reward, "losses/value_loss": reward}
        progress.set_description(f"[{' | '.join(f'{name}: {value:.2f}' for name, value in losses.items())}]")
        progress.update()
        if n % 10 == 0:
            print(
                "[2023-09-24 18:30:26,709] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 "
                "Skipping step. Attempted loss scale: 65536, reducing to 32768",
                file=drawn,
            )
            print(f"{'':40}Evaluation #{n // 10} reward/mean: {reward:.3g}{'':40}", file=drawn)
    run = log(tmp_path, drawn.getvalue())
    assert translate(run).framework == "trlx"
    assert values(run, "eval/reward") == ([1, 11, 21], pytest.approx([float(f"{REWARDS[n]:.3g}") for n in (0, 10, 20)]))
    assert len(run.series["losses/value_loss"]) == COUNT
    assert not [name for name in run.series if "scale" in name or "reducing" in name]


def test_a_bar_that_tells_how_often_the_task_was_done_gives_the_reward(tmp_path: Path) -> None:
    run = log(tmp_path, bar(lambda reward: {"eps": 3, "succ": f"{100 * float(reward):.1f}%", "len": 220}))
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


@pytest.mark.parametrize(
    "line",
    [
        lambda n, r: f"[DEBUG] Batch reward stats - mean: {r:.3f}, min: {r - 1:.3f}, max: 4.0000",
        lambda n, r: f"Episode reward - mean: {r:.3f}, std: 0.25",
        lambda n, r: f"Total Rewards: mean={r:.3f}, std=0.25",
        lambda n, r: f"    Rewards          => Avg: {r:.3e}, Min: -5.001e-03, Max:  5.350e-02",
    ],
)
def test_statistics_of_a_reward_are_named_after_what_stands_before_them(
    tmp_path: Path, line: Callable[[int, float], str]
) -> None:
    run = printed(tmp_path, lambda n, r: line(n, r) + f"\nepoch 0, step {n + 1}")
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_words_and_numbers_that_alternate_within_a_part_are_pairs_each(tmp_path: Path) -> None:
    run = printed(
        tmp_path,
        lambda n, r: (
            f"Iter {n:04d} | avgR {r:8.3f} ±{9 * r:6.2f} | KL 0.0188 (β=0.02) | Lclip 0.0154 Lent {1.4 - r} | time 0.91s"
        ),
    )
    assert values(run, "reward") == (list(range(COUNT)), pytest.approx(REWARDS))
    assert run.series["Lent"].values.tolist() == pytest.approx([1.4 - r for r in REWARDS])
    assert run.series["Lclip"].values.tolist() == [0.0154] * COUNT


def statistics_of(reward: float) -> str:
    return f"  Reward: mean={reward:.3f}, min=0.0, max=9.5, std=1.25\n  Steps:  mean=1000.0, min=1000.0, max=1000.0, std=0.0"


def test_statistics_below_a_heading_of_evaluations_are_an_evaluation_at_its_step(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Eval metrics at step {10 * n}:\n{statistics_of(r)}")
    assert values(run, "eval/reward") == ([10 * n for n in range(COUNT)], pytest.approx(REWARDS))
    assert not any(tag.startswith("Reward") for tag in run.series)


def test_statistics_that_repeat_without_a_step_are_rows_each(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: statistics_of(r))
    assert values(run, "reward")[1] == pytest.approx(REWARDS)


def test_episodes_of_a_test_after_training_are_an_evaluation_and_not_the_reward_of_the_run(tmp_path: Path) -> None:
    lines = [f"Episode {n * 10}, Average Reward (last 10): {reward:.3f}\n" for n, reward in enumerate(REWARDS)]
    run = log(tmp_path, "".join([*lines, *(f"Test Episode {n}, Total Reward: 9.5\n" for n in (1, 2, 3))]))
    assert values(run, "reward") == ([n * 10 for n in range(COUNT)], pytest.approx(REWARDS))
    assert values(run, "eval/reward")[1] == [9.5] * 3


def test_a_greek_letter_is_known_in_its_other_form(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Episode {n} | ϵ: {1 - n / 50:.2f} | reward: {r:.3f}")
    assert values(run, "reward")[1] == pytest.approx(REWARDS)
    assert values(run, "policy/exploration_rate")[1][0] == 1.0


def test_greek_letters_in_names_are_spelt_out(tmp_path: Path) -> None:
    run = printed(tmp_path, lambda n, r: f"Step {n * 10:4d} | reward={r:+.4f} | KL=0.9 | π_loss=inf | v_loss=2.6")
    metrics = translate(run).metrics
    assert metrics["loss/policy_avg"].values.tolist() == [float("inf")] * COUNT
    assert metrics["loss/value_avg"].values.tolist() == [2.6] * COUNT


def test_pairs_before_a_dict_that_is_one_of_them_are_of_its_row(tmp_path: Path) -> None:
    def line(n: int, r: float) -> str:
        counts = {"total_num": 256, "total_reward": round(256 * r, 3)}
        return f"2025-09-23 09:01:{n:02d},984 - train - INFO - rl_loss: {r - 1:.6f}, token_entropy: 0.8, data: {counts}"

    run = printed(tmp_path, line)
    assert values(run, "reward")[1] == pytest.approx([256 * r for r in REWARDS])
    assert values(run, "loss")[1] == pytest.approx([r - 1 for r in REWARDS])
    assert values(run, "entropy")[1] == [0.8] * COUNT


def test_the_rewards_of_one_completion_are_none_of_the_run(tmp_path: Path) -> None:
    def lines(n: int, r: float) -> str:
        row = (
            f"train - INFO - rl_loss: {r - 1:.6f}, token_entropy: 0.8, data: {{'total_num': 256, 'total_reward': {r}}}"
        )
        sample = "train - INFO - reward: {'format_reward': 1.0, 'answer_reward': 1.0, 'reward': 1.0}"
        return f"{row}\ntrain - INFO - prompt: what is {n} + {n}?\n{sample}" if n % 5 == 0 else row

    assert values(printed(tmp_path, lines), "reward")[1] == pytest.approx(REWARDS)


@pytest.mark.parametrize(
    "line",
    [
        lambda n, r: f"Output {n + 1}: Average over {60 + n} episodes - Reward: {r:.3f}",
        lambda n, r: f"  Batch: mean_reward={r:.3f}",
    ],
)
def test_a_reward_at_the_end_of_a_short_line_is_a_row(tmp_path: Path, line: Callable[[int, float], str]) -> None:
    assert values(printed(tmp_path, line), "reward")[1] == pytest.approx(REWARDS)


def test_the_reward_of_one_answer_behind_its_parse_is_no_row(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError):
        printed(tmp_path, lambda n, r: f"answer_parsed: [], gold_parsed: [], reward: {r:.3f}")


@pytest.mark.parametrize(
    "line",
    [
        lambda n, r: f"\n\n---------------rollout reward: {r}\n",
        lambda n, r: f"\n Averaged reward over last 20 runs is {r} \n",
        lambda n, r: f"CumReward={r} | Erfolg={n % 2 == 0} | steps={100 + n * 7 % 13}",
    ],
)
def test_a_reward_whose_line_counts_nothing_is_a_row(tmp_path: Path, line: Callable[[int, float], str]) -> None:
    assert values(printed(tmp_path, line), "reward")[1] == REWARDS


@pytest.mark.parametrize(
    "line",
    [
        lambda n, r: f"Gen {n}: best={r} (all-time={max(REWARDS[: n + 1])}), species=7, genomes=300",
        lambda n, r: f"Generation {n}/600\n\tBest fitness: {r}\n\tMutation rate: 0.1",
    ],
)
def test_the_best_of_a_generation_is_the_largest_reward(tmp_path: Path, line: Callable[[int, float], str]) -> None:
    assert values(printed(tmp_path, line), "reward/max")[1] == REWARDS
