"""What several plugins share: limits of queues, what was let in, what could be evicted, scales of scores, rules about other pods."""
