"""wandb: offline `.wandb` files and runs that a server keeps."""
