"""Every way to fail: one table, from which exit codes, retry rules, conditions and docs come.

Exit codes 64 to 79 are the user's to mend and are not retried; 80 is interrupted work that goes on; the others
are failures with a retry budget. What Kubernetes itself does to a pod (eviction, reboot) is a disruption: it has
no exit code of ours and costs no retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Retry(StrEnum):
    """What the operator does after a failure."""

    NEVER = "Never"
    """The user must change something first."""
    HEALS = "Heals"
    """Waits, and goes on by itself once the missing thing appears."""
    BUDGET = "Budget"
    """Tries again, at most spec.retries times, with growing pauses."""
    FREE = "Free"
    """Tries again at once; does not count."""


@dataclass(frozen=True)
class Reason:
    """One way to fail."""

    name: str
    exit_code: int
    retry: Retry
    hint: str
    """What to do about it: one sentence, in the imperative."""


# One row a line: it is read as a table.
# fmt: off
_TABLE = (
    # The user's data and settings: 64 to 79.
    Reason("InvalidSpec", 64, Retry.NEVER, "Correct the field that the message names."),
    Reason("DatasetInvalid", 65, Retry.NEVER, "Correct the lines that the message names; `finetune validate` checks a file in seconds."),
    Reason("DatasetEmpty", 66, Retry.NEVER, "Give at least one row with an assistant's answer for training and one for validation."),
    Reason("DatasetNotFound", 67, Retry.NEVER, "Check the dataset's source: the path, key or address does not exist."),
    Reason("DatasetTooLong", 68, Retry.NEVER, "Raise training.maxLength to the length that the message names, or allow more with dataset.maxTruncatedFraction."),
    Reason("ModelNotFound", 69, Retry.NEVER, "Check model.source: no such repository, revision or path."),
    Reason("ModelGated", 70, Retry.NEVER, "Accept the model's licence on its hub page, and name a token that may read it in model.tokenSecretRef."),
    Reason("ModelUnsupported", 71, Retry.NEVER, "Choose a model that transformers and llama.cpp both know."),
    Reason("EndOfTurnMismatch", 72, Retry.NEVER, "Set model.chatTemplate to the template that the model was made for."),
    Reason("AddressNotAllowed", 73, Retry.NEVER, "Use a public address, or allow private ones in the operator's values (datasets.allowPrivateAddresses)."),
    Reason("TargetNotFound", 74, Retry.NEVER, "Name modules that the model has in method.lora.targets; the message lists them."),
    Reason("MemoryPlanExceeded", 75, Retry.NEVER, "Lower training.batchSize or training.maxLength, or give the job more memory."),
    Reason("GpuNotVisible", 76, Retry.NEVER, "Check the driver, the device plugin and runtimeClassName, or set platform: cpu."),
    Reason("GateFailed", 77, Retry.NEVER, "Look at the evaluation in the status; change the data or the training, or the gate."),
    # Interrupted: goes on from its checkpoint.
    Reason("Interrupted", 80, Retry.FREE, "Nothing: the run goes on from its last checkpoint."),
    Reason("HostMemoryPressure", 81, Retry.FREE, "Nothing: the run goes on once memory is free; lower other pods' use if it comes back."),
    # Failures that another attempt may get over.
    Reason("HubUnreachable", 82, Retry.HEALS, "Check the network and the hub's address; the job goes on by itself when the hub answers."),
    Reason("ModelCorrupt", 83, Retry.BUDGET, "Nothing at first: the damaged file is fetched again. If it stays, the repository itself is damaged."),
    Reason("StorageNotWritable", 84, Retry.NEVER, "Make the path that the message names writable for the UID that it names."),
    Reason("DiskFull", 85, Retry.NEVER, "Free space on the claim that the message names, or make it larger; then set a new retryToken."),
    Reason("LoaderBypassed", 86, Retry.NEVER, "Report this: the installed transformers loads weights in a way that the eager loader does not cover."),
    Reason("MergeNotProven", 87, Retry.NEVER, "Report this with the message: the merged weights are not what the adapter says."),
    Reason("ConversionFailed", 88, Retry.BUDGET, "Read the log's last lines in the message."),
    Reason("ServerFailed", 89, Retry.BUDGET, "Read the server's last lines in the message."),
    Reason("Stalled", 90, Retry.BUDGET, "Nothing at first: the run starts again from its checkpoint."),
    Reason("StageFailed", 1, Retry.BUDGET, "Read the log's last lines in the message."),
    # What only the operator can see.
    Reason("OutOfMemory", 137, Retry.NEVER, "Raise resources.memory, or lower training.batchSize or training.maxLength; then set a new retryToken."),
    Reason("DeadlineExceeded", 0, Retry.NEVER, "Raise activeDeadlineSeconds; then set a new retryToken."),
    Reason("ImagePullFailed", 0, Retry.HEALS, "Check the image's name and the pull secret; the job goes on by itself when the image can be pulled."),
    Reason("SecretNotFound", 0, Retry.HEALS, "Create the Secret with the key that the message names; the job goes on by itself."),
    Reason("ConfigMapNotFound", 0, Retry.HEALS, "Create the ConfigMap with the key that the message names; the job goes on by itself."),
    Reason("ClaimNotFound", 0, Retry.HEALS, "Create the PersistentVolumeClaim that the message names; the job goes on by itself."),
    Reason("PodRejected", 0, Retry.HEALS, "Read the message: the namespace's quota or policy refuses the pod; the job goes on by itself once it is allowed."),
    Reason("CreateFailed", 0, Retry.HEALS, "Read the message: the API server refuses what the job needs; the job goes on by itself once it is allowed."),
)
# fmt: on

REASONS: dict[str, Reason] = {reason.name: reason for reason in _TABLE}
BY_EXIT_CODE: dict[int, Reason] = {reason.exit_code: reason for reason in _TABLE if reason.exit_code}
