"""Everything about kopf: its settings, its login, and the one handler of its watches."""
