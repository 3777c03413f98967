"""The other side of `ProcessPeer`: reads calls from standard input, writes answers to standard output, a line each.

{"call": "make", "name": "smac", "space": {...}, "seed": 0, "n_initial": 10, "noisy": false, "workers": 1}
{"call": "ask", "q": 1}                               -> {"result": [{...}], "clock": 1.2}
{"call": "tell", "params": {...}, "value": 1.5}       -> {"result": null}
{"call": "recommend"}                                 -> {"result": {...}}
"""

import json
import os
import sys
import time
import traceback
from typing import Any

import torch

from deepbore.space import SearchSpace
from peers.base import Peer
from peers.methods import BY_BUDGET, PEERS


def answered(peer: Peer | None, call: str, settings: dict[str, Any]) -> tuple[Peer, Any]:
    """The peer and its answer to a call."""
    if call == "make":
        method = (PEERS | BY_BUDGET)[settings.pop("name")]
        peer = method.make(SearchSpace.from_dict(settings.pop("space")), **settings)
        return peer, peer.version
    return peer, getattr(peer, call)(**settings)


def main() -> None:
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to standard error instead
    os.dup2(2, 1)
    peer = None
    for line in sys.stdin:
        settings = json.loads(line)
        try:
            peer, result = answered(peer, settings.pop("call"), settings)
            answer = {"result": result, "clock": time.process_time()}
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    if peer is not None:
        peer.close()


if __name__ == "__main__":
    main()
