"""The command line: `pumice`, and `kubectl pumice` as a plugin of kubectl.

One module per command, loaded only when it is called, so that help and completion start at once. A command module has a
`command`; it imports click at the top and everything heavier inside its functions. Commands parse, call and print; what they
call lives elsewhere.
"""

from pumice.cli.program import main

__all__ = ["main"]
