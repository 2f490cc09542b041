"""The chart's values: each is described, known to the schema, and used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CHART = Path(__file__).resolve().parents[2] / "charts/finetune-operator"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

WRONG: dict[str, dict[str, Any]] = {
    "a key that does not exist": {"hubb": {}},
    "a platform that does not exist": {"defaults": {"platform": "tpu"}},
    "a digest that is none": {"images": VALUES["images"] | {"server": {"repository": "x", "digest": "latest"}}},
    "an amount without a unit": {"memory": {"floor": "12"}},
    "a hub without a scheme": {"hub": {"endpoint": "hub.example"}},
}


def test_the_defaults_are_valid() -> None:
    jsonschema.validate(VALUES, SCHEMA)


@pytest.mark.parametrize("changed", WRONG.values(), ids=WRONG.keys())
def test_wrong_values_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(VALUES | changed, SCHEMA)


def test_every_top_level_value_is_used_by_a_template() -> None:
    templates = "".join(path.read_text(encoding="utf-8") for path in CHART.rglob("templates/**/*") if path.is_file())
    unused = [name for name in VALUES if not re.search(rf"\.Values\.{name}\b", templates)]
    assert unused == []
