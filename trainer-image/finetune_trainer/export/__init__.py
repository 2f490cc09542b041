"""From a base and an adapter to merged weights, and the proof that they are what the adapter says."""
