"""The parts of the plan of a FineTuneJob: what has happened, what comes next, and the objects for it."""
