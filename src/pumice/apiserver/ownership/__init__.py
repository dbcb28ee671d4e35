"""Who owns which field of an object: managedFields, and server-side apply upon them. Pure; no I/O."""
