"""How a cycle is put together: extension points, session, statement, configuration, registry, decision record.

Mechanism only: which pod goes where is decided by plugins and actions, which this package never imports. Nothing here does input or
output, reads a clock, or draws a random number.
"""
