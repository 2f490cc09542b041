"""The images of the product and the bases that stand for NVIDIA's in the tests: built by buildah, without Docker."""
