"""Controllers of Volcano's kinds: jobs and what is made of them, queues, flows and schedules."""
