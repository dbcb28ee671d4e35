"""`pumice vet`: manifests in files, judged before they are applied: by their schemas, and by the rules that a cluster's admission follows.

Files are read and judged here; nothing is written anywhere. What is known of a live cluster is handed in.
"""
