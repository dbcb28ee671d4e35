"""A life as a scenario for `pumice test`, as far as one can say it: what people wrote, when, and who should have had room in the end.

Faults on the way, of programs and of disks are no part of scenarios: a finding that needs one stays a seed.
"""

from __future__ import annotations

import json
import re

import yaml

from pumice.api import kinds
from tests.storm import objects

RULES = ("fits", "part")  # what a scenario can expect the opposite of
_PATH = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/?]+))?(?:[?]|$)")
_WRITTEN = {each.plural: each for each in (kinds.POD, kinds.NODE, kinds.JOB, kinds.QUEUE)}


class Diary:
    """Takes down what people write."""

    def __init__(self):
        self.entries = []  # (moment, method, path, body)

    def sent(self, moment, data):
        head, _, body = data.partition(b"\r\n\r\n")
        method, path, _ = head.decode().split("\r\n", 1)[0].split(" ", 2)
        if method != "GET":
            self.entries.append((moment, method, path, json.loads(body) if body else None))


def written(seed, rule, text, given, entries):
    """Give the text of a scenario, or None if what was found cannot be said in one."""
    found = re.search(r"(\w+)/(\w+)-0{8}-", text)
    if rule not in RULES or found is None:
        return None
    steps, before = [], entries[0][0] if entries else 0.0
    for moment, method, path, body in entries:
        step = _step(method, path, body)
        if step is None:
            continue
        if cycles := int(moment) - int(before):
            steps.append({"cycles": cycles})
        before = moment
        steps.append(step)
    wanted = {"pods": {f"{found[1]}/{found[2]}-*": {"bound": True}}}
    steps += [{"cycles": 60}, {"expect": wanted}]
    made = {
        "scenario": f"seed {seed} of the storm: {rule}",
        "config": objects.GOOD[0],
        "given": [each for each in (*objects.everything(), *given) if each["kind"] not in ("Namespace", "ConfigMap")],
        "steps": steps,
    }
    return f"# {text}\n{yaml.safe_dump(made, sort_keys=False)}"


def _step(method, path, body):
    found = _PATH.match(path)
    if found is None:
        return None
    namespace, plural, name = found.groups()
    if plural == "configmaps" and body:
        (text,) = body["data"].values()
        return {"config": text, **({} if text in objects.GOOD else {"rejected": True})}
    kind = _WRITTEN.get(plural)
    if kind is None:
        return None
    if method == "POST":
        return {"apply": [body]}
    if method == "DELETE":
        return {"delete": ["/".join(filter(None, (kind.singular, namespace, name)))]}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **body.get("metadata", {})}
    return {"patch": [{"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}]}
