"""Tables, as `kubectl get` prints them: the columns of built-in kinds, those of custom ones, and their cells. Pure; no I/O."""
