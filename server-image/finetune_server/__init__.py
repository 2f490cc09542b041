"""Everything that runs in convert, evaluate and server pods."""
