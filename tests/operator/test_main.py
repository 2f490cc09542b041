from __future__ import annotations

import subprocess
import sys


def test_wrong_settings_end_the_start_with_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "finetune_operator"], env={}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("finetune-operator: FINETUNE_OPERATOR_NAMESPACE is not set.")
    assert "Traceback" not in done.stderr
