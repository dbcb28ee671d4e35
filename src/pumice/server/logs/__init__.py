"""Log lines, their verbosity, and what is gathered before it is worth a line: watches that are down, writes that fail."""
