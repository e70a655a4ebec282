#!/usr/bin/python3
"""heat2d on three hosts sends over TCP in the background: which network is taken, where a rank listens, and what the
log says where the hosts cannot reach each other. An address that every host has is taken for nobody's.

usage: networks_test.py HEAT2D MPIEXEC DIRECTORY

The test bed is made below DIRECTORY, which all hosts share. Exit status 77: this machine does not allow a test bed.
"""
import collections
import pathlib
import re
import sys

import testbed

HEAT2D, MPIEXEC, DIRECTORY = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
TCP = "background work sends over TCP, on "


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def run(bed, name, steps=60, **variables):
    return bed.start_mpi(bed.hosts, 6, [HEAT2D, "--steps", steps, "--every", 10], {
        "KEDGE_STORE_PATH": bed.store / name, "KEDGE_PERSISTENT_PATH": bed.shared / name, "KEDGE_PERSISTENT_EVERY": "2",
        "KEDGE_PIPELINE_MODE": "background", "KEDGE_PIPELINE_MESSAGES": "tcp"} | {
        f"KEDGE_{key.upper()}": value for key, value in variables.items()}, 60)


def test_which_network(bed):
    network = f"{testbed.NETWORK}.0/24"
    for name, interface, expected in (("any", "", f"eth0@{testbed.NETWORK}."), ("subnet", network, network),
                                      ("second", f"lo,no-such,{network}", network), ("none", "lo", None)):
        code, output = run(bed, name, pipeline_interface=interface).wait()
        check(code == 0, output)
        check("steps computed 60\n" in output and "and persistent, blocked" in output, output)
        if expected is None:
            check("the ranks cannot reach each other over TCP (lo: rank " in output and TCP not in output, output)
            check("cannot be reached at 127.0.0.1 port" in output or "could not connect in time" in output, output)
        else:
            check(TCP + expected in output, output)


def test_where_a_rank_listens(bed):
    """At one address, not at all of a host."""
    host = bed.hosts[1]
    address = re.search(r"inet ([\d.]+)/", bed.run_on(host, "ip -4 -o addr show dev eth0"))[1]
    in_hex = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))

    def listening(mode):
        """How many sockets listen at the host's address, and how many at any."""
        job = run(bed, f"listens-{mode}", steps=200, pipeline_mode=mode)
        job.wait_for(r"committed step-000020 ")
        lines = [line.split() for line in bed.run_on(host, "cat /proc/net/tcp /proc/net/tcp6").splitlines()]
        where = collections.Counter(line[1].split(":")[0] for line in lines if line[3] == "0A")
        check(job.wait().code == 0, job.output())
        return where[in_hex], where["0" * 8] + where["0" * 32]

    inline, background = listening("inline"), listening("background")
    check(background == (inline[0] + 2, inline[1]), "the two ranks of a host listen elsewhere:", inline, background)


def main():
    testbed.end_on_signals()
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    try:
        bed = testbed.TestBed(3, below=DIRECTORY, mpirun=MPIEXEC)
    except testbed.Unavailable as reason:
        print("skipped:", reason)
        return 77
    with bed:
        test_which_network(bed)
        test_where_a_rank_listens(bed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
