from finetune_operator.core.classify import rejected


def refusal(pod: str, about: str = "a-prepare-1-12345678") -> dict[str, object]:
    message = f'Error creating: pods "{pod}" is forbidden: exceeded quota: no-pods'
    return {"reason": "FailedCreate", "involvedObject": {"name": about}, "message": message}


def test_the_same_refusal_is_said_once_though_each_try_has_another_pod() -> None:
    said = {rejected([refusal(f"a-prepare-1-12345678-{end}")], "a-prepare-1-12345678") for end in ("abcde", "x9z8y")}
    (outcome,) = said
    assert outcome is not None
    assert outcome.reason == "PodRejected"
    assert outcome.message == 'Error creating: pods "a-prepare-1-12345678" is forbidden: exceeded quota: no-pods'


def test_a_refusal_of_somebody_else_is_not_ours() -> None:
    assert rejected([refusal("b-x", about="b")], "a-prepare-1-12345678") is None
