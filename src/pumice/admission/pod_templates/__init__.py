"""What kube-apiserver would refuse of a pod, found in its template: a job whose pods cannot be created is better refused than started."""
