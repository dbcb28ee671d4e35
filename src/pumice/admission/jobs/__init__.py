"""Jobs of batch.volcano.sh: what is filled in, what is refused, and what may change later."""
