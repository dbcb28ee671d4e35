"""Finding nodes for the members of one job, without evicting anybody; allocate uses it, and plans do for what needs no victim.

`minimum` says who comes first, `task_runs` places equal members at once, `misfits` remembers who found no node, `inside_domains` and `sub_jobs` look for hyper-nodes that hold a job or its sub-groups,
by the one search of `domain_search`. Tasks travel in the order in which they are tried; nobody changes a list that somebody else holds.
"""
