"""What tests on the node share."""
