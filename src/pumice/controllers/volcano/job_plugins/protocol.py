"""What a job plugin is.

```python
class Greeting:
    \"\"\"Greets every container.\"\"\"

    name = "greeting"
    makes = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        self._word = flags.parse(self.name, arguments, {"word": "hello"}).text("word")

    def objects(self, job: Job) -> list[Beside]:
        return []

    def complete(self, pod: Manifest, place: Place) -> None:
        pods.set_variable(pod, "GREETING", self._word)
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from pumice.api import kinds  # noqa: TC001  msgspec reads the annotations at run time
from pumice.controllers.volcano.jobs.reading import Job, Role  # noqa: TC001  likewise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Manifest = dict[str, Any]


class PluginError(Exception):
    """A Job names a plugin, or an argument of one, that cannot be used; the message says which and what to write."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a Job needs beside its pods: created if it is missing, deleted with the pods; fields named in `fresh` are kept as they are here.

    A map that is costly or made by chance is given by `make`, which is asked only when the object has to be created.
    """

    kind: kinds.Kind
    name: str
    content: Manifest
    fresh: tuple[str, ...] = ()
    make: Callable[[], Manifest] | None = None


class Place(msgspec.Struct, frozen=True):
    """Where a pod stands in its Job."""

    job: Job
    role: Role
    index: int


@runtime_checkable
class JobPlugin(Protocol):
    """A plugin of one Job, made from the arguments that its spec gives; one that cannot use them raises `PluginError`."""

    name: ClassVar[str]
    makes: ClassVar[tuple[kinds.Kind, ...]]
    """The kinds of its objects, which the controller then watches."""

    def __init__(self, arguments: Sequence[str]) -> None: ...

    def objects(self, job: Job) -> Sequence[Beside]:
        """Give what the Job needs beside its pods."""

    def complete(self, pod: Manifest, place: Place) -> None:
        """Complete a pod before it is created; the manifest is the plugin's to change."""
