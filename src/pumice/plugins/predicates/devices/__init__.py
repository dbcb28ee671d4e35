"""Which devices claims get on which node: expressions, pools, the search, and what it means for a pod that is placed."""
