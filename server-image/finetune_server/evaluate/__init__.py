"""Base beside tuned, through the very server that will serve; then the version is published.

The way: ``work.evaluate`` starts ``server.LlamaServer`` for each model, asks the held-out ``rows``, counts with
``metrics``, writes ``report``, and hands all to ``finetune_server.publish``.

Where more belongs: a gate is a pure function over the two ``Scores`` and goes between measuring and publishing in
``work.evaluate``; its verdict is ``EvaluateFacts.servable``. A proof of the GGUF asks the running server and goes
into ``work._measure``, before the questions.
"""
