"""CronJobs: Jobs that start by the clock, Volcano's and those of batch/v1.

`flavours` tells the two kinds apart, `cron_fields` and `schedules` say when, `slots` which start is due, `records` what a CronJob's status and its history are, and `controlling` what is done.
"""
