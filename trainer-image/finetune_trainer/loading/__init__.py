"""Loads weights without ever mapping a file: what CUDA and the page cache share is then filled once, not twice."""
