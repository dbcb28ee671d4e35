"""Policies, one file each: a name, the reasons users see, pure functions over a view, and their registration.

A plugin never imports an action or another plugin, changes nothing itself, and keeps no state that it could not compute again.
"""
