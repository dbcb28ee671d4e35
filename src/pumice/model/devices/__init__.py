"""Devices that claims ask for, as plain data: what drivers offer, what claims ask for and have, and what was decided for pods that are not bound yet.

Nothing here chooses a device; that is a filter's business.
"""
