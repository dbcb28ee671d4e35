"""Jobs that run one after another, and the templates they are made of.

`flows` reads a JobFlow and its Jobs, `reporting` makes its status of them, `controlling` says what is done, `templates` is about JobTemplates.
"""
