#!/usr/bin/env python
"""Builds the site of docs/ with Zensical, and keeps a site of several versions.

    python scripts/make_site.py                          # build/site; fails where a link leads nowhere
    python scripts/make_site.py serve                    # the same in a browser, anew with each change
    python scripts/make_site.py publish 0.4 --to FOLDER  # adds the version to FOLDER, and makes it the latest

FOLDER is what a web server shows: a folder for each version, `latest`, and versions.json, which the menu of versions
reads. The layout is that of mike, but needs neither its branch nor git. Needs deepbore[docs].
"""

import argparse
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = '<!doctype html><meta http-equiv="refresh" content="0; url=latest/"><a href="latest/">deepbore</a>\n'


@contextmanager
def changelog(folder: Path) -> Iterator[None]:
    """While it lasts, docs/changelog.md is CHANGELOG.md, with links that lead from there.

    Args:
        folder: with both of them.
    """
    page = folder / "docs" / "changelog.md"
    text = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    text = re.sub(r"\[[^\]]*docs/(\w+)\.md\]\(docs/", r"[\1](", text)  # a link whose text is its path
    page.write_text(re.sub(r"\]\(docs/", "](", text), encoding="utf-8")
    try:
        yield
    finally:
        page.unlink()


def zensical(*arguments: str) -> None:
    """Runs Zensical in this process.

    Raises:
        SystemExit: with its status, if that is not 0.
    """
    from zensical.main import cli

    try:
        cli(list(arguments))
    except SystemExit as end:
        if end.code:
            raise
    except RuntimeError as error:  # of a strict build; what is wrong has been printed
        raise SystemExit(f"the site was not built: {error}") from None


def is_version(name: str) -> bool:
    """Whether this is a number such as 0.4 or 1.0.2."""
    return re.fullmatch(r"\d+\.\d+(\.\d+)?", name) is not None


def publish(site: Path, version: str, folder: Path) -> None:
    """Copies a built site to its place among the versions, and makes it the latest if none is newer.

    Args:
        site: the built site.
        version: its number.
        folder: with all versions; made if it is not there.

    Raises:
        ValueError: for a version that is no number.
    """
    if not is_version(version):
        raise ValueError(f"a version is a number such as 0.4, but this is {version!r}.")
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    versions = sorted((each.name for each in folder.iterdir() if is_version(each.name)), key=_numbers, reverse=True)
    if versions[0] == version:
        shutil.rmtree(folder / "latest", ignore_errors=True)
        shutil.copytree(site, folder / "latest")
    entries = [
        {"version": each, "title": each, "aliases": ["latest"] if each == versions[0] else []} for each in versions
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(HOME, encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds, serves or publishes; in the folder of the repository, by which snippets are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", default="build", choices=("build", "serve", "publish"))
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "pages")
    given = parser.parse_args(arguments)
    folder = Path.cwd()
    with changelog(folder):
        zensical(*(["serve"] if given.action == "serve" else ["build", "--strict"]))
    if given.action == "publish":
        publish(folder / "build" / "site", given.version, given.to)


if __name__ == "__main__":
    main()
