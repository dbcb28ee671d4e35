"""Policies, one file or one folder each, what several share in `sharing`: a name, the reasons users see, pure functions over a view, and their registration.

A plugin never imports an action or another plugin, changes nothing itself, and keeps no state that it could not compute again.
"""
