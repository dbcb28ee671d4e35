"""Change one thing at a time in the code, and see whether a test notices: `make mutants`."""
