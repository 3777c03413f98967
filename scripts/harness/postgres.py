"""A PostgreSQL server of one's own, on loopback, in a folder that goes with it; where PostgreSQL is installed."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PLACES = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin"]


def missing() -> str:
    """What is missing for a server, in words; empty where there is everything."""
    if _bin() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    return "" if find_spec("psycopg") else "psycopg is not installed (pip install 'psycopg[binary]')"


@contextmanager
def server(host: str = "127.0.0.1") -> Iterator[str]:
    """A new server within the context, which listens at an address of this host and takes its whole network; its URL
    for SQLAlchemy."""
    place = _bin()
    assert place is not None, missing()
    with tempfile.TemporaryDirectory(prefix="deepbore-postgres-") as folder, socket.socket() as free:
        free.bind((host, 0))
        port = free.getsockname()[1]
        free.close()
        user = []
        if os.geteuid() == 0:  # which PostgreSQL refuses
            shutil.chown(folder, "postgres")
            user = ["runuser", "-u", "postgres", "--"]
        data = f"{folder}/data"
        run(*user, place / "initdb", "-D", data, "-U", "deepbore", "-A", "trust", "--no-sync")
        with open(f"{data}/pg_hba.conf", "a") as file:
            file.write(f"host all all {host}/24 trust\n")
        options = f"-p {port} -c listen_addresses={host} -k {folder} -c max_connections=300 -c fsync=off"
        run(*user, place / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            run(*user, place / "createdb", "-h", host, "-p", str(port), "-U", "deepbore", "deepbore")
            yield f"postgresql+psycopg://deepbore@{host}:{port}/deepbore"
        finally:
            run(*user, place / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def run(*command: object) -> None:
    """Runs a command in a folder that every user can read, without its output, a minute at most."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([str(each) for each in command], check=True, cwd="/", timeout=60, **quiet)


def _bin() -> Path | None:
    """The folder of the server's programs."""
    found = sorted(path for place in PLACES for path in Path("/").glob(f"{place[1:]}/initdb"))
    named = [Path(path) for path in [shutil.which("initdb")] if path]
    return next((path.parent for path in [*reversed(found), *named]), None)
