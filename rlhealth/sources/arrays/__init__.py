"""Curves that a user's training loop saves with numpy."""
