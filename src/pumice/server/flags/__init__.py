"""The flags as a table, and the settings that a command line comes to. Nothing here reads anything but its arguments."""
