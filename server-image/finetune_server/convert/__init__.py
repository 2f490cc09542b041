"""From merged weights to the GGUF file that is served; likewise from the base, to be compared with."""
