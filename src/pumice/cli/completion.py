"""`pumice completion`: print what a shell needs to complete commands, flags and names."""

from __future__ import annotations

import click
from click import shell_completion

_EXAMPLES = """\b
Examples:
  source <(pumice completion bash)                             in ~/.bashrc
  source <(pumice completion zsh)                              in ~/.zshrc, after compinit
  pumice completion fish > ~/.config/fish/completions/pumice.fish

\b
Namespaces, queues, ConfigMaps with a configuration and contexts are completed as well, as far as the kubeconfig leads to a
cluster that names them within two seconds.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands, flags, files and names in the cluster."""
    kind = shell_completion.get_completion_class(shell)
    if kind is None:  # pragma: no cover  click knows all three
        raise click.UsageError(f"nothing is known about {shell}")
    made = kind(context.find_root().command, {}, "pumice", "_PUMICE_COMPLETE")
    click.echo(made.source_template % made.source_vars(), nl=False)
