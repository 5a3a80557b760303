"""Process settings at start-up, and the progress line. Imports nothing else of rlhealth."""
