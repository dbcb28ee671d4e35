"""What an API server knows about the built-in kinds beyond their schemas: defaults, validity, what only it may write. Pure; no I/O."""
