"""What authors of rules use: test cases, lint and generated documents. May import engine and below."""
