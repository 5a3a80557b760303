"""wandb: offline `.wandb` files, and runs on a server."""
