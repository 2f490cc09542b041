"""The only code that talks to the API server: a picture of the cluster, and the tasks that act on it."""
