"""``python -m finetune_trainer.export``: the first half of the export stage."""

import sys

from finetune_trainer.contract.paths import MERGE_RESULT
from finetune_trainer.export.work import export
from finetune_trainer.stage import run_stage

if __name__ == "__main__":
    sys.exit(run_stage("export", export, MERGE_RESULT))
