"""``python -m finetune_server.convert``: the second half of the export stage."""

import sys

from finetune_trainer.stage import run_stage

from finetune_server.convert.work import convert

if __name__ == "__main__":
    sys.exit(run_stage("export", convert))
