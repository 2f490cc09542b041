"""``python -m finetune_trainer.prepare``."""

from __future__ import annotations

import logging
import os
import sys

from huggingface_hub.utils import disable_progress_bars

from finetune_trainer.prepare.work import prepare
from finetune_trainer.stage import run_stage

if __name__ == "__main__":
    # Nothing here computes: without torch, transformers loads a tokenizer in a fifth of the time.
    sys.modules["torch"] = None  # type: ignore[assignment]
    os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"
    # Our own lines tell the progress of downloads; bars and requests would drown them.
    disable_progress_bars()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    sys.exit(run_stage("prepare", prepare))
