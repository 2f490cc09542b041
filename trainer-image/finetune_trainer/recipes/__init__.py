"""How to train: one readable file per runtime, each with one function ``train(job) -> TrainFacts``.

load → adapt → train → save. A new recipe is a new file here and a new name in ``contract.runspec.Recipe``.
"""
