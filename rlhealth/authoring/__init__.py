"""What whoever writes rules needs: cases, their runs, lint and generated documents. May import engine and below."""
