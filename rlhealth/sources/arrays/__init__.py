"""Curves that a loop of somebody's own saves with numpy."""
