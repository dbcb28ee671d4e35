"""What a scheduler thinks about: resources, shapes, tasks, jobs, nodes, queues, and the cluster they form.

Plain data and exact integer sums. Nothing here decides, reads a clock, or knows how objects travel. The sums change only through
`Accounting`, which adds or takes away what a run of tasks contributes in one status; every other number can be recounted from the tasks.
"""
