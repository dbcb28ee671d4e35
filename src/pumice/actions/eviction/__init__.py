"""The one search for victims that every evicting action uses: proposers propose plans, one judge decides.

`rules` says who may be taken for whom, `votes` asks the plugins, `units` says what goes together, `plan` holds members, nodes and victims inside a statement. `proposals`
lists those who propose, `judge` lets nothing through that breaks a rule, `search` asks until a plan passes and lasts, `telling` says why not.
"""
