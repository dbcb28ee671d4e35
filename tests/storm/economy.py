"""What programs may cost: no write that changes nothing, none again and again without a pause, none that the last release could not read, and bounds for what they keep open and say."""

from __future__ import annotations

import collections
import json

from pumice.sim.identity import Key
from tests.storm import structs

MOST_CONNECTIONS = 110  # of one program: a watch of each kind, some 40; 64 writers, whose connections are kept for a minute after they wrote; the Lease
MOST_TASKS = 150
MOST_TIMERS = 150
MOST_LINES = 40  # of its log, and as many more as there were faults
MOST_REPEATED = 25  # of one write, word for word, within a second: whoever is refused waits longer each time
SETTLED = 35.0  # seconds of fair weather after which everybody knows what was written
HEARD = 0.01  # seconds after which everybody has heard of a change then


class Economy:
    """Looks at what programs send, and at what they hold in the end."""

    def __init__(self, world, complain):
        self._world = world
        self._complain = complain
        self._reader = structs.Reader()
        self.fair_since = None
        self._unreadable = set()
        self._repeated = {}  # when each write was sent of late, by its words
        self._changed = {}  # when each object changed last

    def sent(self, process, method, path, data):
        """Hear of a write of a program."""
        self._repeats((process, data))
        if method != "PATCH" or self.fair_since is None or self._world.loop.now < self.fair_since + SETTLED:
            return
        key = self._key(path)
        if self._changed.get(key, 0.0) + HEARD > self._world.loop.now:
            return  # two had the same to say at once
        current = self._world.store.find(key) if key else None
        body = data.partition(b"\r\n\r\n")[2]
        if current is not None and body and _holds(current, json.loads(body)):
            self._complain("empty", f"{process} writes to {path[:100]} what is there: {body[:300].decode()}")

    def _repeats(self, words):
        """Complain of who hammers, once."""
        now = self._world.loop.now
        moments = self._repeated.setdefault(words, collections.deque(maxlen=MOST_REPEATED))
        if len(moments) == MOST_REPEATED and now - moments[0] < 1.0:
            self._complain("hammers", f"{words[0]} sends {MOST_REPEATED + 1} times in a second: {words[1][:200]!r}")
            moments.clear()
        moments.append(now)

    def forget(self):
        """Forget what was sent, where there is no end to what happens."""
        self._repeated.clear()
        self._changed.clear()

    def seen(self, key, manifest):
        """Hear of an object that was stored."""
        self._changed[key] = self._world.loop.now
        problem = self._reader.problem(key.kind, manifest)
        if problem and problem not in self._unreadable:
            self._unreadable.add(problem)
            self._complain("unreadable", f"{key.namespace}/{key.name} cannot be read by the last release: {problem}")

    def judge(self):
        """Count what every program holds."""
        loop, faults = self._world.loop, sum(self._world.weather.counts.values())
        timers = loop.timers_of()
        for program in self._world.programs:
            held = {
                "connections": (len(self._world.host.of_process(program.run)), MOST_CONNECTIONS),
                "tasks": (loop.tasks_of(program.run), MOST_TASKS),
                "timers": (timers.get(program.run, 0), MOST_TIMERS),
                "lines in its log": (program.said().count("\n"), MOST_LINES + faults),
            }
            for what, (count, most) in held.items():
                if count > most:
                    self._complain("bounds", f"{program.name} has {count} {what}, more than {most}")

    def _key(self, path):
        """Tell which object a path names, its status too."""
        parts = path.partition("?")[0].strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        kind = next((each for each in self._world.store.known_kinds() if each.plural == parts[0]), None)
        return Key(kind, namespace, parts[1]) if kind and len(parts) > 1 else None


def _holds(present, body):
    """Tell whether merging a body into what is present would change nothing."""
    if isinstance(body, dict) and isinstance(present, dict):
        return all(_holds(present.get(name), each) for name, each in body.items())
    if isinstance(body, list) and isinstance(present, list):
        return all(any(_holds(other, each) for other in present) for each in body)
    return present == body
