#!/usr/bin/python3
"""Several hosts on one machine, for tests that lose a whole host. Needs root, iproute2 and util-linux.

    with TestBed(4, below=DIRECTORY) as bed:
        result = bed.run_mpi(bed.hosts, 8, [PROGRAM, ...], {"KEDGE_STORE_PATH": bed.store}, timeout_s=60)

Each host has its own network, hostname, processes, IPC, and a private tmpfs as node-local store and as /dev/shm; it
shares the other file systems of this machine. Beside them there is a login host without ranks: the bridge that
connects them lies in its network, and mpirun runs there, so that every host that computes may be lost. Nothing of the
bed is in the machine's own namespaces: names and addresses cannot collide with the machine's or with another bed's.
All processes of the bed end with the login host's first one, which ends with the process that built the bed.

From a shell:
    testbed.py up [--nodes 4] [--below DIRECTORY]        builds hosts and prints the bed's directory
    testbed.py run BED [-n RANKS] [--hosts A,B] [-x NAME=VALUE]... [--timeout S] -- PROGRAM ...
    testbed.py kill BED HOST [--processes]            SIGKILL to the host, or to its processes only: the store stays
    testbed.py replace BED HOST [NEW_NAME]            an empty host in its place
    testbed.py down BED                               removes everything
`run` with a number of hosts in place of BED builds a bed for this one job.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("ip", "nsenter", "unshare", "mount", "hostname", "timeout")
NETWORK = "10.77.0"  # seen by nobody outside the bed
LIMIT_S = 20  # for what takes well below a second
NAMESPACES = ("--net", "--uts", "--mount", "--ipc", "--pid")

# The first process of a host; $1 name, $2 the bed's directory, $3 size of each tmpfs, $4... what to stay alive as. It
# reads its process id while /proc is still the machine's. Ignoring SIGCHLD lets the kernel reap whom it inherits.
FIRST_PROCESS = """
set -e
read -r pid rest </proc/self/stat
name=$1 directory=$2 size=$3
shift 3
hostname "$name"
mount -t proc proc /proc
mount -t tmpfs -o "size=$size,mode=0755" "kedge-$name" "$directory/nodelocal"
mount -t tmpfs -o "size=$size,mode=1777" "kedge-$name" /dev/shm
mount --bind "$directory/etc-hosts" /etc/hosts
ip link set lo up
echo "$pid"
exec env --ignore-signal=CHLD "$@" >/dev/null 2>&1
"""

# What mpirun calls in place of ssh: AGENT HOST COMMAND...
AGENT = """#!/bin/sh
host=$1
shift
pid=$(cat '{directory}/pids'/"$host") || { echo "the test bed has no host $host" >&2; exit 255; }
exec nsenter --target "$pid" --net --uts --mount --ipc --pid -- /bin/sh -c "$*"
"""

Result = collections.namedtuple("Result", "code output")


class Unavailable(Exception):
    """This machine does not let us build a bed; says why."""


def environment():
    """That of this process without options of Kedge's and Open MPI's; sbin is not on everybody's path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("KEDGE_", "OMPI_", "PMIX_"))}
    return inherited | {"PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
                        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def namespace_of(pid):
    """The process's namespace of processes, or None if there is no such process."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def wait_until(condition, limit_s, complaint):
    """What the condition gives when it is true at last; complaint() makes the TimeoutError's text."""
    deadline = time.monotonic() + limit_s
    while not (outcome := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(complaint())
        time.sleep(0.005)
    return outcome


class Host:
    """A set of namespaces, held by its first process; ends with that one."""

    def __init__(self, name, number, pid, namespace, process=None):
        self.name, self.number, self.pid, self.namespace, self.process = name, number, pid, namespace, process

    def alive(self):
        return namespace_of(self.pid) == self.namespace

    def processes(self):
        """Process ids of all but the first."""
        return [int(pid) for pid in os.listdir("/proc")
                if pid.isdigit() and int(pid) != self.pid and namespace_of(pid) == self.namespace]

    def enter(self, *command, namespaces=NAMESPACES):
        return ["nsenter", "--target", str(self.pid), *namespaces, "--", *command]

    def network(self, *commands):
        """Commands of ip in this host's network."""
        subprocess.run(self.enter("ip", "-batch", "-", namespaces=["--net"]), input="\n".join(commands) + "\n",
                       env=environment(), text=True, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)

    def kill(self):
        """SIGKILL to all of its processes at once: the kernel does that when the first one goes. Its tmpfs are gone."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.alive() and not self.processes(), LIMIT_S,
                   lambda: f"{self.name} was killed and still has {self.processes()}")
        if self.process:
            self.process.wait(LIMIT_S)


class Job:
    """A started mpirun; its output and the ranks' are in one file. A bed runs one job at a time."""

    def __init__(self, bed, process, file, limit_s):
        self.bed, self.process, self.file, self.limit_s = bed, process, file, limit_s

    def output(self):
        return self.file.read_text(errors="replace")

    def wait(self):
        """Result, when the job has ended and none of its processes lingers. TimeoutError if its time limit ended it."""
        code = self.process.wait(self.limit_s + LIMIT_S)
        if code in (124, 137):
            raise TimeoutError(f"the job did not end within {self.limit_s} s:\n{self.output()[-4000:]}")
        self.bed.wait_until_idle()
        return Result(code, self.output())

    def wait_for(self, pattern):
        """The match, as soon as the output has one. RuntimeError if the job ends before."""
        while True:
            ended = self.process.poll() is not None
            if match := re.search(pattern, self.output()):
                return match
            if ended:
                raise RuntimeError(f"the job ended before it printed {pattern}:\n{self.output()[-4000:]}")
            time.sleep(0.002)


class TestBed:
    """directory: of this bed alone, seen by all hosts, removed at the end; shared: a directory in it for the job's files;
    store: the path of the private tmpfs, the same on each host; hosts: the names, in order."""

    def __init__(self, nodes=4, below=None, size="1g", mpirun="mpirun", outlives=False):
        """Builds a bed in a new directory below the one given; size is that of each tmpfs. Unavailable if this machine
        does not allow it. If it outlives this process, only close() ends it."""
        check_available(mpirun)
        self._use(tempfile.mkdtemp(prefix="kedge-testbed-", dir=below))
        self.size, self.mpirun, self.jobs, self.numbers, self.login, self.nodes = size, mpirun, 0, 0, None, {}
        try:
            if self.directory.is_relative_to("/dev/shm"):
                raise ValueError(f"{self.directory} would be hidden by the hosts' own /dev/shm; choose another directory")
            for name in ("nodelocal", "pids", "shared"):
                (self.directory / name).mkdir()
            (self.directory / "etc-hosts").touch()
            agent = self.directory / "agent"
            agent.write_text(AGENT.replace("{directory}", str(self.directory)))
            agent.chmod(0o755)
            self.login = self._start("login", outlives)
            # With an address of its own: else the bridge takes one of a port, changes it when that host goes, and is
            # lost to the others, which remember the old one.
            self.login.network("link add name bridge address 02:00:00:00:00:fe type bridge",
                               f"addr add {NETWORK}.254/24 dev bridge", "link set bridge up")
            for number in range(nodes):
                self._add(f"kedge{number}")
            self._save()
        except BaseException:
            self.close()
            raise

    @classmethod
    def attach(cls, directory):
        """The bed that another process left there."""
        bed = cls.__new__(cls)
        bed._use(directory)
        state = json.loads((bed.directory / "bed.json").read_text())
        bed.size, bed.mpirun, bed.jobs, bed.numbers = (state[key] for key in ("size", "mpirun", "jobs", "numbers"))
        bed.login = Host(*state["login"])
        bed.nodes = {fields[0]: Host(*fields) for fields in state["nodes"]}
        return bed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def hosts(self):
        return list(self.nodes)

    def start_mpi(self, hosts, ranks, command, env, timeout_s):
        """A Job of so many ranks, spread evenly and in order over these hosts; or as many on each as the dictionary
        hosts says. The ranks get the variables in env, and none of Kedge's from here."""
        self.jobs += 1
        self._save()
        if not isinstance(hosts, dict):
            hosts = {host: -(-ranks // len(hosts)) for host in hosts}
        hostfile, output = (self.directory / f"{name}-{self.jobs}" for name in ("hostfile", "output"))
        hostfile.write_text("".join(f"{host} slots={slots}\n" for host, slots in hosts.items()))
        parameters = {
            "plm": "rsh", "plm_rsh_agent": self.directory / "agent", "plm_rsh_no_tree_spawn": 1,
            "orte_keep_fqdn_hostnames": 1, "orte_tmpdir_base": "/dev/shm", "mpi_yield_when_idle": 1,
            "oob_tcp_if_include": f"{NETWORK}.0/24", "btl_tcp_if_include": f"{NETWORK}.0/24",
            # Without these a host that can no longer say that it is gone would not be missed.
            "oob_tcp_keepalive_time": 3, "oob_tcp_keepalive_intvl": 1, "oob_tcp_keepalive_probes": 2,
            "pml": "ob1", "btl": "self,vader,tcp"}
        given = {name: str(value) for name, value in env.items()}
        launch = [self.mpirun, *(word for name, value in parameters.items() for word in ("--mca", name, str(value))),
                  *(word for name in given for word in ("-x", name)), "--hostfile", str(hostfile),
                  "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *map(str, command)]
        with output.open("wb") as file:
            process = subprocess.Popen(
                self.login.enter("timeout", "--kill-after=5", str(timeout_s), *launch), env=environment() | given,
                cwd=self.shared, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True)
        return Job(self, process, output, timeout_s)

    def run_mpi(self, hosts, ranks, command, env, timeout_s):
        """Result of such a job."""
        return self.start_mpi(hosts, ranks, command, env, timeout_s).wait()

    def run_on(self, host, command):
        """Output of a shell command on one host. CalledProcessError if it fails."""
        return subprocess.run(self.nodes[host].enter("sh", "-c", command), env=environment(), text=True, check=True,
                              timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout

    def kill(self, host):
        """SIGKILL to every process of a host, which is gone with its tmpfs."""
        (self.directory / "pids" / host).unlink(missing_ok=True)
        self.nodes[host].kill()

    def kill_processes(self, host):
        """SIGKILL to what runs on a host; the host and its tmpfs stay."""
        node = self.nodes[host]
        # All at once but for the first one and the killer; fails if there is none.
        subprocess.run(node.enter("sh", "-c", "kill -s KILL -- -1 2>&1 || true", namespaces=["--pid"]),
                       env=environment(), check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        self.wait_until_idle([host])

    def wait_until_idle(self, hosts=None, limit_s=LIMIT_S):
        """Waits for processes of a job that was killed, which may linger. TimeoutError names them."""
        nodes = [self.nodes[host] for host in (self.hosts if hosts is None else hosts)]

        def lingering():
            return {node.name: found for node in nodes if (found := node.processes())}

        wait_until(lambda: not lingering(), limit_s, lambda: f"still running on the hosts: {lingering()}")

    def replace(self, host, name=None):
        """A new, empty host in the place of one, under its name or another; has another address."""
        if self.nodes[host].alive():
            self.kill(host)
        order = [name or host if other == host else other for other in self.nodes]
        del self.nodes[host]
        self._add(name or host)
        self.nodes = {other: self.nodes[other] for other in order}
        self._save()

    def close(self):
        """Removes all that was made."""
        if self.login:
            self.login.kill()
        for node in self.nodes.values():
            node.kill()  # is on its way
        shutil.rmtree(self.directory)

    def _use(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        self.shared, self.store = self.directory / "shared", self.directory / "nodelocal"

    def _add(self, name):
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name) or name in (*self.nodes, "login"):
            raise ValueError(f"a host cannot have the name {name}")
        # Addresses are not used again: neighbours would still look for the old host.
        self.numbers += 1
        node = self.nodes[name] = self._start(name)
        self.login.network(f"link add name host{node.number} master bridge type veth peer name eth0 netns {node.pid}",
                           f"link set host{node.number} up")
        node.network(f"addr add {NETWORK}.{node.number}/24 dev eth0", "link set eth0 up")
        # In place: each host has bound this very file.
        (self.directory / "etc-hosts").write_text("127.0.0.1 localhost\n" + f"{NETWORK}.254 login\n" + "".join(
            f"{NETWORK}.{other.number} {other.name}\n" for other in self.nodes.values()))
        # The agent runs on the login host and wants the process id that is valid there.
        numbers = re.search(r"^NSpid:(.*)$", pathlib.Path(f"/proc/{node.pid}/status").read_text(), re.M)[1].split()
        (self.directory / "pids" / name).write_text(numbers[-2] + "\n")

    def _start(self, name, outlives=True):
        """The login host, or another below it. If it does not outlive this process, it ends with the pipe to it."""
        stay = ["sleep", "infinity"] if outlives else ["cat"]
        below = self.login.enter(namespaces=["--pid"]) if self.login else []
        process = subprocess.Popen(
            [*below, "unshare", *NAMESPACES, "--fork", "sh", "-c", FIRST_PROCESS, "kedge-testbed", name,
             str(self.directory), self.size, *stay],
            env=environment(), text=True, stdin=subprocess.DEVNULL if outlives else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        with process.stdout as said:
            answer = said.readline().strip()
            if not answer.isdigit():
                raise Unavailable(f"the host {name} cannot be made: {answer}{said.read()}")
        return Host(name, self.numbers, int(answer), namespace_of(answer), process)

    def _save(self):
        login, *nodes = ([host.name, host.number, host.pid, host.namespace]
                         for host in (self.login, *self.nodes.values()))
        (self.directory / "bed.json").write_text(json.dumps(
            {"size": self.size, "mpirun": self.mpirun, "jobs": self.jobs, "numbers": self.numbers, "login": login,
             "nodes": nodes}))


def check_available(mpirun="mpirun"):
    """Tries what a bed is made of. Unavailable says what is missing."""
    if os.geteuid() != 0:
        raise Unavailable("namespaces need root")
    path = environment()["PATH"]
    if missing := [program for program in (*PROGRAMS, mpirun) if not shutil.which(program, path=path)]:
        raise Unavailable(f"these programs are missing: {', '.join(missing)}")
    steps = ("mount -t proc proc /proc && mount -t tmpfs none /dev/shm && ip link add name bridge type bridge && "
             "ip link add name a master bridge type veth peer name b")
    tried = subprocess.run(["unshare", *NAMESPACES, "--fork", "sh", "-c", steps], env=environment(), text=True,
                           timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if any(word in tried.stdout for word in ("garbage", "Usage", "not found", "syntax")):
        raise RuntimeError(f"a mistake of the test bed's own, not of this machine: {tried.stdout.strip()}")
    if tried.returncode != 0:
        raise Unavailable(f"this machine does not let us make namespaces: {tried.stdout.strip()}")


def end_on_signals():
    """SIGTERM and SIGHUP end this process as an exception does, so that beds are closed."""
    def end(number, _):
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # closing is not disturbed
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)


def run(bed, arguments):
    hosts = arguments.hosts.split(",") if arguments.hosts else bed.hosts
    variables = dict(pair.split("=", 1) for pair in arguments.variables)
    code, output = bed.run_mpi(hosts, arguments.ranks or len(hosts), arguments.command, variables, arguments.timeout)
    print(output, end="")
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    up, runs, kill, replace, down = map(actions.add_parser, ("up", "run", "kill", "replace", "down"))
    up.add_argument("--nodes", type=int, default=4)
    up.add_argument("--below")
    for action in (runs, kill, replace, down):
        action.add_argument("bed")
    for action in (kill, replace):
        action.add_argument("host")
    kill.add_argument("--processes", action="store_true")
    replace.add_argument("name", nargs="?")
    runs.add_argument("-n", dest="ranks", type=int)
    runs.add_argument("--hosts")
    runs.add_argument("-x", dest="variables", action="append", default=[])
    runs.add_argument("--timeout", type=int, default=600)
    runs.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    end_on_signals()
    if arguments.action == "up":
        print(TestBed(arguments.nodes, arguments.below, outlives=True).directory)
        return 0
    if arguments.action == "run" and arguments.bed.isdigit():
        with TestBed(int(arguments.bed)) as bed:
            return run(bed, arguments)
    bed = TestBed.attach(arguments.bed)
    if arguments.action in ("kill", "replace") and arguments.host not in bed.hosts:
        parser.error(f"the hosts of this bed are {', '.join(bed.hosts)}")
    return {"run": lambda: run(bed, arguments), "down": bed.close,
            "kill": lambda: (bed.kill_processes if arguments.processes else bed.kill)(arguments.host),
            "replace": lambda: bed.replace(arguments.host, arguments.name)}[arguments.action]()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Unavailable, ValueError, OSError) as error:
        sys.exit(f"testbed.py: {error}")
