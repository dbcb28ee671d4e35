"""What makes pods of a Job know each other: one file for each plugin that a Job's spec may name.

A plugin completes pods before they are created and names objects that the Job needs beside them. It does no input or output; packages add their own through
the entry-point group `pumice.job_plugins`.
"""
