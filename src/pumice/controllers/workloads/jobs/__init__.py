"""Jobs of batch/v1: pods until enough have succeeded or too many have failed, each counted once, whatever is lost on the way."""
