"""How much is kept: the entries of every container that objects of ours hold."""

from __future__ import annotations

from collections import deque


def entries(*roots, beyond=()):
    """Count the entries of every container that can be reached, by the attributes on the way to it; objects of the API count as a whole, and those that are `beyond` not at all."""
    found, seen = {}, {id(each) for each in beyond} - {id(each) for each in roots}
    waiting = deque((type(root).__name__, root) for root in roots)
    while waiting:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict | list | set | deque):
            found[path] = found.get(path, 0) + len(value)
            waiting.extend((f"{path}[]", each) for each in (value.values() if isinstance(value, dict) else value))
        elif isinstance(value, tuple):
            waiting.extend((f"{path}()", each) for each in value)
        elif type(value).__module__.startswith("pumice.") and not type(value).__module__.startswith("pumice.api."):
            names = [name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())]
            names += getattr(value, "__dict__", {})
            waiting.extend((f"{path}.{name}", getattr(value, name, None)) for name in dict.fromkeys(names))
    return found
