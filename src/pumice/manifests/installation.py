"""Everything that an installation consists of, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.manifests import admission, objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.manifests.release import Release

Manifest = dict[str, Any]
_PARTS: Final[dict[str, Callable[[Release], list[Manifest]]]] = {
    "scheduler": objects.scheduler,
    "controllers": objects.controllers,
    "admission": admission.objects,  # last to come and first to go: a webhook without a server behind it refuses everything
}


def manifests(release: Release) -> list[Manifest]:
    """Give the objects of the parts that are wanted, in the order to apply them."""
    return [manifest for name, part in _PARTS.items() if name in release.parts for manifest in part(release)]
