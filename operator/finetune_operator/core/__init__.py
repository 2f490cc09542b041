"""Pure decisions: no kopf, no kubernetes, no clock, no files."""
