"""``python -m finetune_server.evaluate``: the last stage."""

import sys

from finetune_trainer.stage import run_stage

from finetune_server.evaluate.work import evaluate

if __name__ == "__main__":
    sys.exit(run_stage("evaluate", evaluate))
