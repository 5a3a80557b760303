"""How this process behaves: its start-up, its progress line. Imports nothing else of rlhealth."""
