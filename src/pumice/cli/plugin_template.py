"""What `pumice plugin new` writes: a filter with a setting, and a scenario that fails without it."""

from __future__ import annotations

from string import Template
from typing import Final

_SOURCE: Final = Template('''\
"""$name: keep nodes below a number of pods."""

import numpy as np
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.session import Session
from pumice.framework.subject import Subject
from pumice.model.nodes import Nodes


class ${kind}Settings(Settings):
    """What a configuration may say under `arguments`."""

    pods = settings.whole("$name.pods", 10, minimum=0, help="pods that a node takes")


class $kind(Plugin):
    """Keep nodes below a number of pods."""

    name = "$name"
    points = frozenset({"Predicate"})
    reads = NODE_LOCAL  # the answer for a node changes only with that node's own amounts
    settings = Configured(${kind}Settings)

    def open(self, session: Session) -> None:
        """Register at the extension points; called in every cycle."""
        self.full = session.reason(self.name, Code.UNSCHEDULABLE, "node(s) had as many pods as $name allows")
        session.predicate.add(self.fits)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector:
        """Answer for all nodes of the view at once: 0 fits, otherwise the number of the reason."""
        return np.where(nodes.pods >= self.settings.pods, self.full, 0).astype(np.int16)
''')

_SCENARIO: Final = Template("""\
scenario: $name keeps nodes below its number of pods
config: |
  actions: "enqueue, allocate, backfill"
  tiers:
  - plugins: [{name: gang}, {name: predicates}]
  - plugins: [{name: $name, arguments: {$name.pods: 2}}]
given:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "8", memory: 8Gi}}}
- repeat: 3
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: "p-{i}", namespace: a}
    spec: {schedulerName: volcano, containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
steps:
- cycles: 3
- expect:
    pods: {a/p-*: {bound: true, some: 2}}
    events: [{reason: Unschedulable, message~: "1 node.s. had as many pods as $name allows"}]
""")


def source(name: str) -> str:
    """Give the Python file of a plugin."""
    return _SOURCE.substitute(name=name, kind="".join(word.capitalize() for word in name.split("-")))


def scenario(name: str) -> str:
    """Give the scenario that tests it."""
    return _SCENARIO.substitute(name=name)
