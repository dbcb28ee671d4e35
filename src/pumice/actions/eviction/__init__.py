"""The one search for victims that every evicting action uses.

`rules` says who may be taken for whom, `units` what goes together, `planning` finds where the claimant's members go and what that costs, `trimming`
spares whoever can be spared, `looping` refuses what the next cycle would undo. Nothing becomes real before a whole plan stands.
"""
