"""The API: the models of both kinds, the rules that the API server checks, and the CRDs that are made out of them."""
