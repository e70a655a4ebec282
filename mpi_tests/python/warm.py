"""Starts Python programs, and ranks of them as torchrun would, in processes that have imported a module already.

Importing DeepSpeed takes three of the four seconds of most such programs. What torchrun itself does is in other tests.
"""

import collections
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

Done = collections.namedtuple("Done", "returncode stdout")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


class Warm:
    """A process with `module`, of which each rank of each program is a fork."""

    def __init__(self, module, environment):
        self.server = subprocess.Popen([sys.executable, "-B", __file__, module], text=True, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env=environment)

    def run(self, program, *arguments, ranks=None, timeout=120, environment=None):
        """Runs a file, or the text of a program; `ranks`: one process that is no rank of anything, if None. Returns the
        first status that is not zero, and all that was printed; once a rank fails, or at the timeout, the others are
        killed."""
        with tempfile.NamedTemporaryFile("w+") as printed, tempfile.NamedTemporaryFile("w", suffix=".py") as text:
            if "\n" in program:
                text.write(program)
                text.flush()
                program = text.name
            shared = {} if ranks is None else {
                "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "TORCHELASTIC_RUN_ID": "warm",
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
            request = {"program": program, "arguments": arguments, "printed": printed.name, "timeout": timeout,
                       "environment": {**shared, **(environment or {})}, "ranks": ranks}
            self.server.stdin.write(json.dumps(request) + "\n")
            self.server.stdin.flush()
            answer = self.server.stdout.readline()
            assert answer, "the process that starts programs ended"
            return Done(int(answer), printed.read())

    def close(self):
        self.server.stdin.close()
        assert self.server.wait(60) == 0


def wait_for(children, timeout):
    """Returns the first status that is not zero, or 0."""
    limit, found = time.monotonic() + timeout, 0
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in children:
            children.remove(pid)
            found = found or os.waitstatus_to_exitcode(status)
        elif time.monotonic() > limit:
            found = found or 124
        if found:
            for child in children:
                os.kill(child, signal.SIGKILL)
        if pid == 0:
            time.sleep(0.01)
    return found


def next_program():
    """Returns in each child with what it is to run and its rank; ends the server when nobody asks any more."""
    for line in sys.stdin:
        request, children = json.loads(line), []
        for rank in range(request["ranks"] or 1):
            child = os.fork()
            if child == 0:
                return request, rank
            children.append(child)
        print(wait_for(children, request["timeout"]), flush=True)
    sys.exit(0)


def become(request, rank):
    """This process is as if Python had been started with the program; returns its text."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    printed = os.open(request["printed"], os.O_WRONLY | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(nothing)
    os.close(printed)
    os.environ.update(request["environment"])
    if request["ranks"] is not None:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    sys.argv = [request["program"], *request["arguments"]]
    sys.path[0] = os.path.dirname(request["program"])
    with open(request["program"]) as file:
        return file.read()


if __name__ == "__main__":
    __import__(sys.argv[1])
    gc.freeze()  # what is shared by all is not looked through at the end of each
    _request, _rank = next_program()
    _text = become(_request, _rank)
    __file__ = _request["program"]
    exec(compile(_text, __file__, "exec"))  # no function: the program's names are those of __main__
