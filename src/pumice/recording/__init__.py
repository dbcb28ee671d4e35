"""Recordings of a scheduler: what its decisions rest on and what they were, and the same run again from that.

Here live the format, the recorder with the thread that writes, and the player. Nothing here decides anything: a replay runs the scheduler itself.
"""
