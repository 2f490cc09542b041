"""Everything that runs in the prepare, train and export pods of a FineTuneJob."""
