"""The parts of the plan of an InferenceService: its model, its server, and how one follows another."""
