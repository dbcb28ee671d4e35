# ruff: noqa: INP001  a script, not a package
"""Write the files under `deploy/` that are made from code: `python deploy/generate.py`, or with `--check` only compare.

The tables of `pumice.manifests` and `pumice.kube.permissions` are the source. Files that open with the notice are never edited.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.admission import rules
from pumice.kube import admission_permissions, permissions, web_permissions
from pumice.manifests import admission, component, monitoring, objects, release, resources, text, user_roles

if TYPE_CHECKING:
    from collections.abc import Sequence

DEPLOY = Path(__file__).parent
NOTICE = "# Written by deploy/generate.py from the code; run that instead of editing.\n"


def files() -> dict[str, str]:
    """Give every generated file by its path under `deploy/`."""
    pages = {
        f"crds/{resource.kind.group}_{resource.kind.plural}.yaml": text.dump(resources.definition(resource))
        for resource in resources.CURRENT
    }
    pages["crds-kube-batch.yaml"] = text.stream(map(resources.definition, resources.KUBE_BATCH))
    pages["manifests/namespace.yaml"] = text.dump(objects.namespace(release.Release()))
    pages["manifests/scheduler.yaml"] = text.stream(objects.scheduler(release.Release()))
    pages["manifests/controllers.yaml"] = text.stream(objects.controllers(release.Release()))
    pages["manifests/single.yaml"] = text.stream(objects.scheduler(release.Release(controllers="single")))
    pages["manifests/admission.yaml"] = text.stream(admission.objects(release.Release()))
    pages["chart/files/admission-rules.yaml"] = text.dump(admission_permissions.cluster_rules())
    pages["chart/files/admission-namespace-rules.yaml"] = text.dump(
        admission_permissions.cluster_rules(namespaces=True)
    )
    pages["chart/files/admission-paths.yaml"] = text.dump([_path(rule) for rule in rules.RULES])
    pages["chart/files/admission-webhook-rules.yaml"] = text.dump(admission_permissions.webhook_rules(["NAMES"]))
    pages["chart/files/admission-certificate-rules.yaml"] = text.dump(admission_permissions.certificate_rules("NAME"))
    pages["chart/files/cluster-rules.yaml"] = text.dump(permissions.cluster_rules())
    controllers, single = release.Release(), release.Release(controllers="single")
    pages["chart/files/controllers-cluster-rules.yaml"] = _rules(component.controllers(controllers))
    pages["chart/files/single-cluster-rules.yaml"] = _rules(component.scheduler(single))
    pages["chart/files/lease-rules.yaml"] = text.dump(permissions.lease_rules("NAME"))
    pages["chart/files/configuration-rules.yaml"] = text.dump(permissions.configuration_rules("NAME"))
    pages["chart/files/geometries-rules.yaml"] = text.dump(permissions.geometries_rules())
    pages["chart/files/web-rules.yaml"] = text.dump(permissions.cluster_rules(web_permissions.PERMISSIONS))
    pages["chart/files/user-rules.yaml"] = text.dump(user_roles.rules())
    pages["monitoring/alerts.yaml"] = text.dump(monitoring.alert_rules())
    marked = {path: NOTICE + page for path, page in pages.items()}
    return {
        **marked,
        "chart/config/volcano-scheduler.conf": release.CONFIGURATION,
        "chart/config/volcano-admission.conf": admission.CONFIGURATION,
        "monitoring/dashboard.json": json.dumps(monitoring.dashboard(), indent=2) + "\n",
    }


def _rules(part: component.Component) -> str:
    return text.dump(permissions.cluster_rules(part.permissions))


def _path(rule: rules.Rule) -> dict[str, object]:
    """Say what the chart must know of a path of the webhooks."""
    kind = rule.kind
    about = {"path": rule.path, "mutates": rule.mutates, "kind": kind.singular, "group": kind.group}
    return {**about, "version": kind.version, "resource": kind.plural, "operations": list(rule.operations)}


def outdated() -> list[str]:
    """Name the files that say something else than the code, those that should be gone included."""
    wanted = files()
    stray = [path for path in _generated() if path not in wanted]
    return stray + [path for path, page in wanted.items() if _stored(path) != page]


def main(argv: Sequence[str]) -> int:
    """Write the files, or complain about those that are out of date."""
    late = outdated()
    if "--check" in argv:
        for path in late:
            sys.stderr.write(f"deploy/{path} is out of date; run python deploy/generate.py\n")
        return 1 if late else 0
    wanted = files()
    for path in late:
        file = DEPLOY / path
        if path not in wanted:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted[path], encoding="utf-8")
        sys.stdout.write(f"deploy/{path}\n")
    return 0


def _generated() -> list[str]:
    found = (file for file in sorted(DEPLOY.rglob("*.yaml")) if file.is_file())
    return [str(file.relative_to(DEPLOY)) for file in found if file.read_text(encoding="utf-8").startswith(NOTICE)]


def _stored(path: str) -> str:
    file = DEPLOY / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
