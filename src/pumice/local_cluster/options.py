"""What `pumice up` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

if TYPE_CHECKING:
    from pumice.local_cluster import pools


Admission = Literal["pumice", "strict", "none"]
SERVED: Final = ("volcano", "default-scheduler")
"""Whose pods are scheduled: ordinary manifests run, too."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """A local cluster, as it was asked for."""

    pools: list[pools.Pool]
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    scheduler: Literal["pumice", "none"] = "pumice"
    controllers: Literal["pumice", "none"] = "pumice"
    admission: Admission = "pumice"
    gang_jobs: bool = False  # whether Jobs whose pods all run at once are gangs of Kubernetes' own
    config: str = ""
    policy: str = ""  # the text of a configuration, for a scheduler that is given no file
    plugins_dir: str = ""
    speed: float = 1.0
    load: Path | None = None
    verbosity: int = 0
    web: bool = False
    web_port: int = 0
    kubelets: bool = True  # without them nobody serves the nodes, as on a bare API server

    @property
    def scheduled(self) -> dict[str, Any] | None:
        """What others may know of the scheduler: whose pods it schedules, and by which file; None if there is none."""
        if self.scheduler == "none":
            return None
        named = {"configuration": str(Path(self.config).absolute())} if self.config else {}
        return {"names": list(SERVED), **named}
