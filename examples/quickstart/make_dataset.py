"""Makes ``examples/quickstart.yaml``: synthetic invoices, as sentences and as JSON, put before the job of ``job.yaml``.

The same file every time. With ``--check`` nothing is written, and the exit status says whether the file is current.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKELETON = HERE / "job.yaml"
TARGET = HERE.parent / "quickstart.yaml"
TRAIN_ROWS = 320
TEST_ROWS = 24
SYSTEM = "Extract invoice, customer, total and currency as JSON."

SENTENCES = (
    "Invoice {invoice} for {customer}: {total} {currency}, due in {count} days.",
    "Invoice {invoice} of {count} March, {customer}, {total} {currency}.",
    "Invoice {invoice}, {count} {goods}, customer {customer}, total {total} {currency}.",
    "Reminder to {customer}: invoice {invoice} over {total} {currency} is still open.",
    "We billed {customer} {total} {currency} under number {invoice} for {count} {goods}.",
    "{customer} owes us {total} {currency} for {goods} (invoice {invoice}).",
    "{customer} ordered {count} {goods}: {total} {currency} on invoice {invoice}.",
    "{count} {goods} went to {customer}; invoice {invoice}, amount {total} {currency}.",
    "The {goods} for {customer} come to {total} {currency}, see invoice {invoice}.",
    "Dear {customer}, for {count} {goods} we ask {total} {currency}. Invoice {invoice}.",
    "Received {total} {currency} from {customer} for invoice {invoice}.",
    "Paid after {count} days: {total} {currency} by {customer}, invoice {invoice}.",
)
NAMES = (
    "Alpine", "Baker", "Blue River", "Carter", "Castle", "Coral", "Eastside", "Falcon", "Fisher", "Garden", "Golden",
    "Harbor", "Hunter", "Island", "Lake", "Mason", "Miller", "North", "Oak Street", "Parker", "Silver", "Summit",
    "Turner", "Walker",
)  # fmt: skip
TRADES = ("Books", "Foods", "Hotel", "Labs", "Motors", "Music", "Design", "Tools", "Travel", "Works")
GOODS = ("desk lamps", "chairs", "monitors", "cables", "notebooks", "printers", "coffee mugs", "batteries", "shelves")
CURRENCIES = ("EUR", "USD", "GBP", "CHF")


@dataclass(frozen=True)
class Invoice:
    """What is to be found in a sentence, in the order of the answer."""

    invoice: int
    customer: str
    total: float
    currency: str


def invoice(dice: random.Random) -> Invoice:
    """An invoice that nobody wrote. Cents end in 5, so that JSON writes an amount as the sentence does."""
    return Invoice(
        invoice=dice.randint(1000, 9999),
        customer=f"{dice.choice(NAMES)} {dice.choice(TRADES)}",
        total=round(dice.randint(20, 999) + dice.choice((0.25, 0.45, 0.75, 0.95)), 2),
        currency=dice.choice(CURRENCIES),
    )


def pairs(count: int) -> dict[str, str]:
    """Different sentences and their answers, the same ones every time."""
    dice = random.Random(7)  # noqa: S311 - data, not secrets
    found: dict[str, str] = {}
    while len(found) < count:
        facts = asdict(invoice(dice))
        sentence = dice.choice(SENTENCES).format(**facts, count=dice.randint(2, 30), goods=dice.choice(GOODS))
        found[sentence] = json.dumps(facts)
    return found


def line(sentence: str, answer: str, *, told: bool) -> str:
    """One conversation as a line of JSON; ``told`` says what is wanted before."""
    turns = {"system": SYSTEM} if told else {}
    turns |= {"user": sentence, "assistant": answer}
    return json.dumps({"messages": [{"role": role, "content": content} for role, content in turns.items()]})


def quickstart() -> str:
    """The file, with both sets in the ConfigMap.

    Half of the rows to learn from do not say what is wanted: the tuned model needs no telling. Each held-out row does
    say it: the base shall have its chance.
    """
    made = list(pairs(TRAIN_ROWS + TEST_ROWS).items())
    train = [line(*pair, told=index % 2 == 0) for index, pair in enumerate(made[:TRAIN_ROWS])]
    files = {"train.jsonl": train, "test.jsonl": [line(*pair, told=True) for pair in made[TRAIN_ROWS:]]}
    data = "".join(f"  {name}: |\n" + "".join(f"    {row}\n" for row in rows) for name, rows in files.items())
    return SKELETON.read_text(encoding="utf-8").replace("data: {}\n", f"data:\n{data}")


def main(arguments: list[str]) -> int:
    """Write the file, or check it."""
    if arguments != ["--check"]:
        TARGET.write_text(quickstart(), encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == quickstart():
        return 0
    print("examples/quickstart.yaml is out of date: run `python examples/quickstart/make_dataset.py` and commit it.")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
