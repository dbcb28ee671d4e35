"""HyperNodes: how many nodes each has, and how they are made from what nodes' labels or a fabric manager say.

`settings` reads which sources are asked, `labels` and `ufm` turn what a source says into HyperNodes, `aligning` makes the cluster have just those, and
`counting` and `controlling` are the controllers. Asking a fabric manager is not done here: whoever runs the controllers hands in its answers.
"""
