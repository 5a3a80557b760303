"""A real TRL GRPO run that fits a laptop's CPU: a tiny untrained model learns to write digits, or is ruined by its
learning rate.

    pip install trl torch tensorboard
    python examples/train_tiny_grpo.py --output runs/tiny                            # healthy
    python examples/train_tiny_grpo.py --output runs/ruined --learning-rate 0.05     # ruined within the first steps
    rlhealth watch runs/ruined --interval 1 --stop-on critical --stop-pid PID        # beside it
    python examples/train_tiny_grpo.py --output runs/inside --learning-rate 0.05 --callback   # or inside it

Nothing is downloaded: model and tokenizer are made here.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

CHARACTERS = "0123456789abcd ?"


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a character."""
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", *CHARACTERS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    made.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<end>", padding_side="left")


def save_model(tokens: PreTrainedTokenizerFast, folder: Path) -> str:
    """Two layers of 64, as they come out of the random number generator, in a folder from which the trainer reads
    policy and reference.
    """
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokens),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.pad_token_id,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return str(folder)


def digits(completions: list[str], **_: Any) -> list[float]:
    """The reward: the share of digits in what was written."""
    return [sum(character.isdigit() for character in text) / max(1, len(text)) for text in completions]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="the folder of the run")
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument(
        "--callback", action="store_true", help="judge the run from inside, and stop it at a critical finding"
    )
    asked = parser.parse_args()
    print(f"process {os.getpid()}", flush=True)
    tokens = tokenizer()
    settings = GRPOConfig(
        output_dir=asked.output,
        max_steps=asked.steps,
        learning_rate=asked.learning_rate,
        lr_scheduler_type="constant",
        beta=0.1,
        num_generations=8,
        per_device_train_batch_size=32,
        max_completion_length=48,
        logging_steps=1,
        save_strategy="no",
        report_to=["tensorboard"],
        use_cpu=True,
        seed=1,
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=save_model(tokens, Path(asked.output) / "base"),
        processing_class=tokens,
        reward_funcs=digits,
        args=settings,
        train_dataset=Dataset.from_dict({"prompt": ["abc ?", "bad ?", "dab ?"] * 100}),
    )
    if asked.callback:
        from rlhealth.callback import HealthCallback

        trainer.add_callback(HealthCallback(stop_on="critical"))
    trainer.train()
    print(f"ended at step {trainer.state.global_step} of {asked.steps}", flush=True)


if __name__ == "__main__":
    main()
