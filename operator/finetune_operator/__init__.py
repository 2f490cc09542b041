"""Reads FineTuneJobs and InferenceServices, decides, and applies."""
