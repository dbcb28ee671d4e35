"""The structural schemas of the custom resources: which fields there are, what they may be, and what they are if nobody says."""
