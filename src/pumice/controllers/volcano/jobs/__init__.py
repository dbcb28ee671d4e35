"""The controller of Volcano's Job: what is observed of one goes in, what is to be done about it comes out.

Every decision is a function of what is written in the cluster. A restart is first counted in the status, with the action that it was and whom it is for; whom
to delete then follows from the version and the retry count that pods were stamped with, so a controller that is killed between any two requests is
continued by another one.
"""
