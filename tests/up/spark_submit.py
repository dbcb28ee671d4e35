"""Spark, for its operator to call: `spark-submit` makes the driver's pod, and the driver, once it runs, the pods of its executors.

Containers of `pumice up` are simulated, so Spark's own programs cannot run there; names, labels and what the pods ask for are Spark's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from testbed import provide, waiting

ROOT = Path(__file__).parents[2]
_PREFIX = "spark.kubernetes."


def main(arguments: list[str]) -> None:
    """Make the driver, and leave a child behind that plays it."""
    settings = dict(
        arguments[at + 1].split("=", 1) for at, argument in enumerate(arguments[:-1]) if argument == "--conf"
    )
    namespace, name = settings[f"{_PREFIX}namespace"], settings[f"{_PREFIX}driver.pod.name"]
    made = json.loads(_kubectl("create", "-o", "json", "-f", "-", given=_pod(settings, "driver", name, {})))
    if os.fork():
        return
    os.setsid()
    for stream in range(3):  # the operator waits for whoever holds its pipes
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    running = ("get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.phase}")
    waiting.until(lambda: _kubectl(*running) == "Running", every=0.5)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"], "controller": True}
    for number in range(1, int(settings["spark.executor.instances"]) + 1):
        executor = f"{name.removesuffix('-driver')}-exec-{number}"
        _kubectl("create", "-f", "-", given=_pod(settings, "executor", executor, owner, number))


def _pod(settings, role, name, owner, number=0):
    metadata = {
        "name": name,
        "namespace": settings[f"{_PREFIX}namespace"],
        "annotations": _under(settings, f"{_PREFIX}{role}.annotation."),
        "labels": {
            **_under(settings, f"{_PREFIX}{role}.label."),
            "spark-role": role,
            "spark-app-selector": "spark-4f2c",
            **({"spark-exec-id": str(number)} if number else {}),
        },
        **({"ownerReferences": [owner]} if owner else {}),
    }
    container = {
        "name": f"spark-kubernetes-{role}",
        "image": settings[f"{_PREFIX}{role}.container.image"],
        "resources": {"requests": {"cpu": settings[f"spark.{role}.cores"], "memory": "1408Mi"}},
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    if scheduler := settings.get(f"{_PREFIX}scheduler.name"):
        spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _under(settings, prefix):
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def _kubectl(*arguments, given=None):
    text = json.dumps(given) if given else None
    command = [str(provide.program("kubectl")), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def home(folder):
    """Make a folder that is Spark's home for whoever looks for `bin/spark-submit` there."""
    program = folder / "bin/spark-submit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {__file__} "$@"\n')
    program.chmod(0o755)
    return folder


if __name__ == "__main__":
    main(sys.argv[1:])
