"""Evaluations that Stable-Baselines3 keeps beside a training."""
