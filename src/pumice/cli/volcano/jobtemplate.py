"""`pumice jobtemplate`: templates that flows make their jobs from."""

from pumice.cli.volcano import flows

command = flows.group("jobtemplate", "templates of jobs")
