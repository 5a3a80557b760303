"""What fuzzing starts from: small pieces of the real logs in fixtures/, and of the files that users write."""

from __future__ import annotations

import bz2
import gzip
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.framing import SEPARATOR, event_payloads, event_spans, wandb_log, wandb_spans

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
SMALL = 6_000  # bytes; the smaller a seed, the more inputs a second


@cache
def event_files() -> list[bytes]:
    """The first short records of real event files."""
    found = []
    for raw in _all("tensorboard/**/*tfevents*"):
        records = [raw[start:end] for start, end in event_spans(raw) if end - start < 500]
        found += [b"".join(records[:60]), b"".join(records[:6])]
    return found


@cache
def event_records() -> list[bytes]:
    """A few payloads each, of real event files: head, settings, scalars, histograms."""
    found = []
    for raw in _all("tensorboard/**/*tfevents*"):
        payloads = event_payloads(raw)
        kept = [one for one in payloads if len(one) < SMALL // 2]
        found += [SEPARATOR.join(kept[:8]), SEPARATOR.join(kept[:3] + kept[-20:])]
    return found


@cache
def wandb_files() -> list[bytes]:
    """The first records of real `.wandb` files, with the last."""
    return [wandb_log(_few(raw)) for raw in _all("wandb/*.wandb") + _all("everywhere/**/*.wandb")]


@cache
def wandb_records() -> list[bytes]:
    return [SEPARATOR.join(_few(raw)) for raw in _all("wandb/*.wandb") + _all("everywhere/**/*.wandb")]


def _few(raw: bytes) -> list[bytes]:
    """Some records of each size, in their order: settings, rows, the summary, the exit."""
    records = [record for _, _, record in wandb_spans(raw) if len(record) < 2500]
    rows = sorted((record for record in records if b"\x12" in record[:4] and b"train/" in record), key=len)
    return records[:4] + rows[-3:] + rows[:2] + records[-3:]


@cache
def databases() -> list[bytes]:
    """Trackio's database with the first rows of a real one, in small pages."""
    found = []
    for rows, page in ((2, 512), (5, 1024)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "small.db"
            small_database(path, rows, page)
            found.append(path.read_bytes())
    return found


def small_database(path: Path, rows: int, page: int = 1024) -> None:
    """Writes Trackio's tables and indices, with the first `rows` rows of a real one."""
    source = next((FIXTURES / "everywhere").rglob("*.db"))
    old = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
    new = sqlite3.connect(path)
    new.execute(f"PRAGMA page_size = {page}")
    kept = "tbl_name IN ('metrics', 'configs', 'alerts')"
    for (statement,) in old.execute(
        f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND {kept} ORDER BY type DESC"
    ):
        new.execute(statement)
    for row in old.execute(f"SELECT * FROM metrics WHERE length(metrics) > 500 LIMIT {rows}"):
        new.execute(f"INSERT INTO metrics VALUES ({','.join('?' * len(row))})", row)
    new.execute(
        "INSERT INTO configs (run_id, run_name, config, created_at) VALUES ('1', 'a', '{\"beta\": 0.04, \"hub_token\": \"x\"}', '2026')"
    )
    new.commit()
    new.close()
    old.close()


@cache
def trainer_states() -> list[bytes]:
    """The first entries of real log histories, between head and tail as they were."""
    found = []
    for raw in _all("trainer_state/**/*.json") + _all("everywhere/**/trainer_state.json"):
        state = json.loads(raw)
        state["log_history"] = state["log_history"][:2] + state["log_history"][-1:]
        found.append(json.dumps(state, indent=2).encode())
    return found


@cache
def rows_of_json() -> list[bytes]:
    """Log rows one a line, and nested ones."""
    found = [
        "\n".join(json.dumps(row) for row in json.loads(raw)["log_history"][:4]).encode() + b"\n"
        for raw in _all("trainer_state/**/*.json")
    ]
    nested = b'{"step": 1, "data": {"actor/kl": 0.1, "critic/score/mean": NaN}, "lengths": [1, 2, 3]}\n{"step": 2, "data": {"actor/kl": "0.2"}}\n'
    return [
        *found,
        nested,
        b'{"_step": 0, "_timestamp": 1.7e9, "h": {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}, "train/loss": null}\n',
    ]


@cache
def shapes() -> list[bytes]:
    """A log's rows in the shapes of which one could be passed by: packed, in other encodings, indented, after settings."""
    text = rows_of_json()[0]
    settings = b'{"setting": "a", "value": "on"}\n' * 25
    told = text.decode()
    return [
        gzip.compress(text),
        bz2.compress(text),
        *(told.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le")),
        settings + text,
        b'{"a" ' * 200,
        b'{"a": ' * 100 + b"[1, }",
        b"step loss kl\n1 0.5 0.1\n2 0.4 0.2\n3 0.3 0.3\n",
    ]


@cache
def documents() -> list[bytes]:
    """JSON documents of rows and of columns."""
    rows = [b"[" + b",".join(one.strip().split(b"\n")) + b"]" for one in rows_of_json()]
    return [
        *rows,
        b'{"history": ' + rows[0] + b"}",
        b'{"1": {"reward": 0.5, "kl": NaN}, "step_2": {"reward": 1e400}, "3": {"reward": "0,5"}, "args": {"lr": [1]}}',
        b'{"args": {"lr": 1}, "run": {"history": {"reward": [0.5, 0.4, NaN], "kl": [1, null, 2]}}}',
        b"[[1795207287.17, 1, 0.05], [1795207287.27, 2, NaN], [1795207287.27, -3, null], [1]]",
        b'{"loss": [0.5, 0.4, NaN], "step": [1, 2, 3], "kl": ["0.1", null, 1e400]}',
    ]


@cache
def tables() -> list[bytes]:
    """The first lines of SB3's table, the exports of TensorBoard's and wandb's pages, a long table."""
    return [
        b"".join((FIXTURES / "tables" / "progress.csv").read_bytes().splitlines(keepends=True)[:4]),
        b"Wall time,Step,Value\n1795207000.25,1,0.5\n1795207003.75,2,nan\n",
        b'"Step","exp1 - train/kl","exp1 - train/kl__MIN","exp1 - train/kl__MAX"\n"1","0.5","0.1","0.9"\n"2","","",""\n',
        b"tag,step,value,run\nkl,1,0.5,a\nkl,2,inf,b\nreward,1,1_000,a\n",
        b"step;reward;kl\n1;0,5;nan\n2;1e5;None\n",
        b"".join((FIXTURES / "tables" / "decimal_comma.csv").read_bytes().splitlines(keepends=True)[:4]),
        "step\treward\n1\t∞\n".encode("utf-16"),
    ]


@cache
def consoles() -> list[bytes]:
    """What trainers print: dicts, boxes, `step:1 - …`, notebook tables, `name/metric: 1.0`."""
    return [
        b"{'loss': 0.5, 'grad_norm': np.float64(1.25), 'reward': tensor(0.5, device='cuda:0'), 'epoch': 0.01}\n  5%|##   | 1/20 [00:01<00:19]\n",
        b"---------------------------------\n| rollout/           |          |\n|    ep_rew_mean     | 21.5     |\n| train/             |          |\n"
        b"|    approx_kl       | 0.0087   |\n---------------------------------\n",
        b"step:1 - actor/kl:0.1 - critic/score/mean:np.float64(0.5) - timing_s/gen:1.5\nstep:2 - actor/kl:nan - critic/score/mean:0.4\n",
        b"[step 3/200] correct=1/4 rewards=['0.01', '0.40'] loss=0.01\nEpisode 4 | Rewards: [-11.5 -7.8]\nEpisode 5: Score = [[39.5]]\n",
        b"---------- 22-21-00-29-161451 Accuracy reward: 1.0 ----------\nContent: <think>\n" * 9
        + b"---------- 22-21-00-32-161451 Accuracy reward: 0.0 ----------\n",
        b"timesteps    32768.0\nmean_episode_rewards    1.5\nName: 0, dtype: float64\n Step | Reward | Notes\n-----------\n 1 | 0.5 |\n",
        *[path.read_bytes() for path in sorted((FIXTURES / "consoles").glob("*.log"))],
        b"    step  reward     kl\n0      5  0.0781  0.005\n1     10     NaN    inf\n\nepisode 3 reward 0.5 length 20\n",
        "Iter 10:\nTotal Rewards:  μ=0.5, σ=0.1\nHit limit: 12.5%\nStep 1 ▸ reward 0.5 · kl 0.01\n[eval] step: 1, reward: 2\n".encode(),
        b"Step: 12000. Mean Reward: 0.239. Std of Reward: 0.001. Training.\ntask_id=1 reward=0.5\nstep=1 loss=0.1\n",
        b"Step\tTraining Loss\treward\n10\t0.500000\t1.2\n20\t0.400000\t1.3\n",
        b"| Step | Training Loss |\n|------|---------------|\n| 10 | 0.5 |\n",
        b"charts/episodic_return: 21.0\nlosses/approx_kl: 0.01\ncharts/episodic_return: 22.0\n\n\x1b[32mstep=1 loss=0.5 kl=0.1 lr=1e-6\x1b[0m\n",
        b'{"loss": 0.5,\n "reward": 1.0,\n "kl": 0.1}\n',
        b"  Step 1: generating 2 candidates...\n  Rewards: [0.5, 1.0] (2/2)\n  Step 2: sampling\nscores = [0.5 nan]\nkl: 0.1\n",
        b"Epoch 1\nstep 1 loss 0.5 reward: 1\nstep 2 loss 0.4\nEpoch 2\nstep 1 loss 0.3\n",
        b"------ STEP 1 ------\nscores/mean:\t0.5  <---- it rises\nkl:\t0.1 # nats\n",
    ]


@cache
def evaluations() -> list[bytes]:
    """The real file of Stable-Baselines3."""
    return _all("evaluations/evaluations.npz")


def arrays() -> list[bytes]:
    """Arrays as numpy writes them, in both orders and several types."""
    import io

    import numpy as np

    found = []
    for array in (
        np.arange(3) * 100,
        np.ones((3, 2)),
        np.asfortranarray(np.ones((3, 2), np.float32)),
        np.ones(3, bool),
    ):
        text = io.BytesIO()
        np.save(text, array)
        found.append(text.getvalue())
    return found


def curves() -> list[bytes]:
    """Arrays of one dimension, alone and in an archive, and of several curves, as numpy writes them."""
    import io

    import numpy as np

    found = []
    for save in (
        lambda file: np.save(file, np.arange(9) / 2),
        lambda file: np.save(file, np.arange(60).reshape(2, 30) / 2),
        lambda file: np.savez(file, rewards=np.ones(9), steps=np.arange(9)),
    ):
        text = io.BytesIO()
        save(text)
        found.append(text.getvalue())
    return found


def tables_of_curves() -> list[bytes]:
    """Curves of several runs below each other and beside each other, as pandas and json write them."""
    import json

    import numpy as np
    import pandas as pd

    seeds = pd.DataFrame(np.arange(60).reshape(2, 30) / 2)
    tables = [seeds.to_csv(), seeds.to_csv(index=False), seeds.T.to_csv(), json.dumps(seeds.to_numpy().tolist())]
    return [table.encode() for table in tables]


def pickles() -> list[bytes]:
    """Curves as pickle writes them, in several of its protocols."""
    import pickle
    from collections import deque

    import numpy as np

    rewards = np.arange(9) / 2
    held = ({"rewards": rewards.tolist(), "losses": rewards}, [*rewards], deque(rewards.tolist()))
    return [pickle.dumps(one, protocol) for one in held for protocol in (0, 2, 4, 5)]


def notebooks() -> list[bytes]:
    """Real notebooks with the first rows of their tables."""
    found = []
    for raw in _all("notebooks/*.ipynb"):
        book = json.loads(raw)
        for cell in book["cells"]:
            for output in cell.get("outputs", []):
                html = output.get("data", {}).get("text/html")
                if html:
                    output["data"]["text/html"] = html[:60] + html[-3:]
                output.pop("traceback", None)
                if "text" in output:
                    output["text"] = output["text"][:2]
        found.append(
            json.dumps({"cells": book["cells"][-3:], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).encode()
        )
    return found


@cache
def notebook_outputs() -> list[bytes]:
    """Code, printed text and HTML, as the cells of real notebooks have them."""
    found = []
    for raw in notebooks():
        cells = json.loads(raw)["cells"]
        code = "".join("".join(cell["source"]) for cell in cells)
        shown = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
        html = "".join("".join(one.get("text/html", "")) for one in shown)
        text = "".join("".join(one.get("text/plain", "")) for one in shown)[:2_000]
        found.append("\x1e".join((code, text, html)).encode())
    rows = [f"{row}      {10 * row}  0.{row}17 0.{row}5\n" for row in range(40)]
    heading = "    step  loss  reward\n"
    parts = "".join((heading, *rows[:5], "\n", heading, *rows[-5:]))  # the head and the tail of one table
    return [*found, f"log\x1e{parts}".encode(), *(b"trainer.train()\x1e" + one for one in consoles())]


@cache
def swanlab_files() -> list[bytes]:
    """The first records of a real `.swanlab` file."""
    return [raw[:size] for raw in _all("trackers/swanlab/*.swanlab") for size in (3_000, 600)]


@cache
def mlflow_databases() -> list[bytes]:
    """MLflow's tables with the first rows of a real database, in small pages."""
    (source,) = FIXTURES.glob("trackers/mlflow.db")
    old = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.db"
        new = sqlite3.connect(path)
        new.execute("PRAGMA page_size = 512")
        for name in ("experiments", "runs", "metrics", "params"):
            (statement,) = old.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
            new.execute(statement)
            for row in old.execute(f"SELECT * FROM {name} LIMIT 8"):
                new.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
        new.commit()
        new.close()
        old.close()
        return [path.read_bytes()]


@cache
def metric_lines() -> list[bytes]:
    """The first lines of real files of MLflow's and DVCLive's, and of their settings."""
    lines = [
        b"".join(raw.splitlines(keepends=True)[:4])
        for raw in _all("trackers/**/reward") + _all("trackers/**/reward.tsv")
    ]
    return [*lines, *_all("trackers/mlruns/*/*/meta.yaml"), *_all("trackers/dvclive/params.yaml")]


@cache
def rules() -> list[bytes]:
    return [raw for raw in _all("../rules/*/*.yaml") if b"\nseverity:" in raw]


@cache
def settings_files() -> list[bytes]:
    return [
        b'fail_on = "warning"\nmin_steps = 10\nselect = ["kl-high"]\nrequire = ["entropy"]\nrules = {}\n[aliases]\n"my/kl" = "kl"\n',
        b'[[ignore]]\nrule = "kl-high"\nreason = "known"\nuntil = 2027-01-01\n[rules.kl-high]\nabove = 2\nseverity = "info"\nheld_for = 3\n[rules.kl-high.critical]\nabove = 9.5\n',
        b'[tool.rlhealth]\nfail_on = "info"\n[tool.rlhealth.aliases]\n"a" = "kl"\n',
    ]


def _all(pattern: str) -> list[bytes]:
    base = ROOT if pattern.startswith("../") else FIXTURES
    return [path.read_bytes() for path in sorted(base.glob(pattern.removeprefix("../")))]
