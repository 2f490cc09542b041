"""``python -m finetune_trainer.prepare``."""

from __future__ import annotations

import sys

from finetune_trainer.prepare.work import prepare
from finetune_trainer.stage import run_stage

if __name__ == "__main__":
    sys.exit(run_stage("prepare", prepare))
