"""Object stores (s3://, gs://, hf://): the logs below an address, mirrored and read like files."""
