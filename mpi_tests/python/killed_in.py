"""killed_in.py WHERE TAG PROGRAM ...: runs a program with DeepSpeed of which rank 0 is killed when checkpoint TAG is

    saved   in the stores, at the end of save_checkpoint
    told    complete on all ranks, and not yet named in the file latest
    named   in the file latest
"""

import os
import runpy
import signal
import sys

from kedge.deepspeed import KedgeCheckpointEngine as Engine

where, tag = sys.argv[1:3]
sys.argv = sys.argv[3:]
secure, commit, get_commit_info = Engine.secure, Engine.commit, Engine.get_commit_info
committed = []


def die_if(here, info):
    if os.environ["RANK"] == "0" and here == where and info is not None and info.tag == tag:
        os.kill(os.getpid(), signal.SIGKILL)


def secured(self):
    secure(self)
    die_if("saved", self._pending and self._pending.info)


def told(self, info):
    die_if("told", info)
    committed.append(info)
    return commit(self, info)


def asked(self):
    if committed:
        die_if("named", committed[-1])
    return get_commit_info(self)


Engine.secure, Engine.commit, Engine.get_commit_info = secured, told, asked
runpy.run_path(sys.argv[0], run_name="__main__")
