"""Expressions in CEL: compile, evaluate, and what went wrong. The evaluator is the CEL project's own, an optional extra; nothing here knows what an expression is about."""
