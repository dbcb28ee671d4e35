"""What users of vcctl type: jobs, queues, pods, flows and templates, with its verbs, flags and columns.

What is printed is made by pure functions of objects and of the time (`columns`, `job_rows`, `queue_rows`, `pod_rows`, `flow_rows`, `job_text`,
`making`); what talks to a cluster stands apart (`calls`, `listing`, `watching`). Scripts read the plain tables by column, so names, order and least
widths are vcctl's and stay; everything of our own is behind `-o` and `--watch`, or to the right of them: why a Job waits. A terminal that is too narrow for
that gets fewer columns; a script never does. numpy is not imported here.
"""
