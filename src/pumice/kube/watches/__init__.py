"""What arrives: every kind is listed and watched, through cuts, lost history and silence, and handed on as changes."""
