"""The page: who holds what, who waits and why, live in a browser.

What is shown comes from `study.following`, what is explained from `study.explanation`; nothing below knows of this package, and nothing here writes to a
cluster. One event loop serves all viewers (`serving`, `streaming`); rows are encoded once for all of them (`board`); questions are answered by a process of
their own (`asking`, and `studying` at its other end), one at a time and within a time. The files of the page are in `page/`, as browsers take them.
"""
