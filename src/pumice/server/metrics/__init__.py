"""What is measured and how it is exposed: series as data, hooks that observe, samples that are gathered when somebody scrapes."""
