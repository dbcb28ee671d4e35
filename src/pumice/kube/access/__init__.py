"""Where the API server is and who we are to it: kubeconfig files, the account of a pod, credentials, certificates, proxies.

Nothing here sends a request.
"""
