"""How busy nodes are, asked of a source of metrics beside the cycle."""
