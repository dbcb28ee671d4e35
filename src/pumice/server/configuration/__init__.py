"""Where the configuration comes from, and what is in force: a file or a ConfigMap, plugins from a folder, what was refused and why."""
