"""`pumice jobflow`: flows of jobs that depend on each other."""

from pumice.cli.volcano import flows

command = flows.group("jobflow", "flows of jobs")
