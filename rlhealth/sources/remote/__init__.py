"""Object stores (s3://, gs://, hf://): the logs below an address are mirrored and read like files."""
