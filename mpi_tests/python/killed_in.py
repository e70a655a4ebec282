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
from kedge.deepspeed._pending import Pending

where, tag = sys.argv[1:3]
sys.argv = sys.argv[3:]
secure, get_commit_info, write_latest = Engine.secure, Engine.get_commit_info, Pending.write_latest
in_latest = []


def die_if(here, info):
    if os.environ["RANK"] == "0" and here == where and info is not None and info.tag == tag:
        os.kill(os.getpid(), signal.SIGKILL)


def secured(self):
    secure(self)
    die_if("saved", self._pending and self._pending.info)


def told(self):
    die_if("told", self.info)
    write_latest(self)
    in_latest.append(self.info)


def asked(self):
    if in_latest:
        die_if("named", in_latest[-1])
    return get_commit_info(self)


Engine.secure, Engine.get_commit_info, Pending.write_latest = secured, asked, told
runpy.run_path(sys.argv[0], run_name="__main__")
