"""The deciding thread and the I/O thread, and what passes between them."""
