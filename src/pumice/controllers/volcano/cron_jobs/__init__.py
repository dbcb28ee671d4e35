"""CronJobs: Jobs that start by the clock.

`cron_fields` and `schedules` say when, `slots` which start is due, `records` what a CronJob's status and its history are, and `controlling` what is done.
"""
