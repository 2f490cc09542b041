"""Taking our rules, and only ours, out of the machine's packet filter.

kube-proxy, the kubelet and the CNI plugins put their rules into chains of their own, and jump there from the
machine's chains. What is ours is therefore: every such chain that was not there before, and every rule that jumps
into one.
"""

import re
from dataclasses import dataclass, field

from testnode.shell import attempt, run

FAMILIES = ("iptables", "ip6tables")
OURS = re.compile(r"^(KUBE|CNI)-")
JUMP = re.compile(r" -j (\S+)")


@dataclass
class Table:
    """One table as iptables-save prints it: chains in order, and rules as written."""

    chains: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)


def save(family: str) -> str:
    """The rules of a family (iptables or ip6tables) as they are now."""
    return run([f"{family}-save"])


def remove_ours(family: str, before: str) -> None:
    """Take out what was added since ``before``."""
    script = removal(before, save(family))
    if script:
        run([f"{family}-restore", "--noflush", "--wait"], stdin=script)


def parse(saved: str) -> dict[str, Table]:
    """Tables by name."""
    tables: dict[str, Table] = {}
    table = Table()
    for line in saved.splitlines():
        if line.startswith("*"):
            table = tables.setdefault(line[1:], Table())
        elif line.startswith(":"):
            table.chains.append(line[1:].split()[0])
        elif line.startswith("-A "):
            table.rules.append(line)
    return tables


def removal(before: str, now: str) -> str:
    """A script for iptables-restore that takes out of ``now`` our chains that were not there before."""
    old = parse(before)
    blocks = (_table_removal(name, old.get(name, Table()), table) for name, table in parse(now).items())
    return "".join(blocks)


def rules(saved: str) -> set[tuple[str, str]]:
    """Everything that filters: (table, rule or chain of somebody's own). Empty tables and counters are nothing."""
    built_in = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}
    return {
        (name, line)
        for name, table in parse(saved).items()
        for line in (*table.rules, *(chain for chain in table.chains if chain not in built_in))
    }


def kube_proxy_is_here() -> bool:
    """Whether some kube-proxy has its chains in the packet filter."""
    return any(attempt([family, "-t", "nat", "-nL", "KUBE-SERVICES"]).returncode == 0 for family in FAMILIES)


def _table_removal(name: str, old: Table, table: Table) -> str:
    ours = [chain for chain in table.chains if OURS.match(chain) and chain not in old.chains]
    jumps = [rule for rule in table.rules if _chain(rule) not in ours and _target(rule) in ours]
    if not ours:
        return ""
    lines = [
        f"*{name}",
        *(rule.replace("-A ", "-D ", 1) for rule in jumps),
        *(f"-F {chain}" for chain in ours),
        *(f"-X {chain}" for chain in ours),
        "COMMIT",
    ]
    return "\n".join(lines) + "\n"


def _chain(rule: str) -> str:
    return rule.split()[1]


def _target(rule: str) -> str | None:
    jump = JUMP.search(rule)
    return jump.group(1) if jump else None
