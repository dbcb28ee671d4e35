"""The three plain ways to patch an object: JSON patch, JSON merge patch and strategic merge patch. Pure; no I/O."""
