"""Does the advice heal? Sick set-ups are trained, their advice is applied, and they are trained again."""
