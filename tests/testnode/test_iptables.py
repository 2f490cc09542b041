import pytest

from testnode import iptables

EMPTY = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [3:180]\nCOMMIT\n"
DOCKER = """*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
COMMIT
"""
NODE = """*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-MARK-MASQ - [0:0]
:CNI-fdb7acf2 - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 10.42.0.2/32 -m comment --comment "name: \\"finetune\\" id: \\"5c\\"" -j CNI-fdb7acf2
-A KUBE-SERVICES -d 10.43.0.10/32 -p udp -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
"""
NODE_REMOVAL = """*nat
-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-D POSTROUTING -s 10.42.0.2/32 -m comment --comment "name: \\"finetune\\" id: \\"5c\\"" -j CNI-fdb7acf2
-F KUBE-SERVICES
-F KUBE-MARK-MASQ
-F CNI-fdb7acf2
-X KUBE-SERVICES
-X KUBE-MARK-MASQ
-X CNI-fdb7acf2
COMMIT
"""


@pytest.mark.parametrize(
    ("before", "now", "want_removal"),
    [
        pytest.param(EMPTY, EMPTY, "", id="nothing came, nothing goes"),
        pytest.param("", DOCKER, "", id="what others made meanwhile stays"),
        pytest.param(DOCKER, NODE, NODE_REMOVAL, id="our chains and the jumps into them go"),
        pytest.param("", NODE, NODE_REMOVAL, id="a table that was not there before is cleaned like the others"),
        pytest.param(NODE, NODE, "", id="chains that were there before are not ours"),
    ],
)
def test_removal(before: str, now: str, want_removal: str) -> None:
    assert iptables.removal(before, now) == want_removal


def test_removal_covers_every_table() -> None:
    script = iptables.removal("", NODE + NODE.replace("*nat", "*filter"))
    assert [line for line in script.splitlines() if line.startswith("*")] == ["*nat", "*filter"]


@pytest.mark.parametrize(
    ("saved", "want_rules"),
    [
        pytest.param(EMPTY, set(), id="empty tables and counters are nothing"),
        pytest.param(
            DOCKER,
            {
                ("nat", "DOCKER"),
                ("nat", "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER"),
                ("nat", "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE"),
            },
            id="rules and chains count",
        ),
    ],
)
def test_rules(saved: str, want_rules: set[tuple[str, str]]) -> None:
    assert iptables.rules(saved) == want_rules
