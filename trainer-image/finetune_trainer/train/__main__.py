"""``python -m finetune_trainer.train``: the command of the train pod."""

from __future__ import annotations

import sys

from finetune_trainer.stage import run_stage
from finetune_trainer.train.work import work

if __name__ == "__main__":
    sys.exit(run_stage("train", work))
