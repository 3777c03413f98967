"""`ProcessPeer`: a peer that lives in a process of its own virtual environment."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from deepbore.space import Params
from peers import venvs
from peers.base import Peer

SCRIPTS = Path(__file__).parent.parent
TAIL = 2000  # characters of its standard error that an error message shows


class ProcessPeer(Peer):
    """Forwards all calls to `serve.py` under the interpreter of a virtual environment: a line of JSON each way.

    Args:
        name: of the method.
        environment: name of the virtual environment.
    """

    def __init__(self, name: str, environment: str, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # lives as long as the process
        self.process = subprocess.Popen(
            [venvs.python(environment), "-W", "ignore", "-m", "peers.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent)])},
        )
        self._clock = 0.0
        self._version = self.call(
            "make",
            name=name,
            space=self.space.to_dict(),
            seed=self.seed,
            n_initial=self.n_initial,
            noisy=self.noisy,
            workers=self.workers,
        )

    def ask(self, q: int) -> list[Params]:
        return self.call("ask", q=q)

    def tell(self, params: Params, value: float | None) -> None:
        self.call("tell", params=params, value=value)

    def recommend(self) -> Params:
        return self.call("recommend")

    @property
    def version(self) -> str:
        return self._version

    def clock(self) -> float:
        return super().clock() + self._clock

    def call(self, what: str, **settings: Any) -> Any:
        """What the peer answers.

        Raises:
            RuntimeError: if it fails, or its process has ended.
        """
        try:
            self.process.stdin.write(json.dumps({"call": what, **settings}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.errors.seek(0)
            raise RuntimeError(f"the peer's process has ended: {self.errors.read()[-TAIL:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self._clock = answer["clock"]
        return answer["result"]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()
