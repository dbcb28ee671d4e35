"""The names under which this program is vcctl or one of its companions, and what each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

SLURM: Final = ("vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume")
NAMES: Final = ("vcctl", *SLURM)


def find(name: str) -> click.Command:
    """Give the command that a name of the above stands for."""
    if name == "vcctl":
        from pumice.cli.volcano import vcctl  # noqa: PLC0415  only one of the two is needed

        return vcctl.vcctl
    from pumice.cli.volcano import slurm  # noqa: PLC0415  as above

    found: click.Command = getattr(slurm, name)
    return found
