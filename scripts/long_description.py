"""Writes .github/long_description.md: README.md as an index of packages shows it, where no repository is beside it.

    python scripts/long_description.py

Links and pictures lead to the project's home, the one address of it: "Source" in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / ".github/long_description.md"


def long_description(readme: str, home: str) -> str:
    """The text with absolute links, and with the line that installs from the index.

    Args:
        readme: Markdown with links relative to the repository.
        home: the address of the repository.
    """

    def absolute(match: re.Match[str]) -> str:
        is_picture, text, place = match.groups()
        kind = "raw" if is_picture else "blob"
        return f"{is_picture}[{text}]({home}/{kind}/main/{place})"

    text = re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)", absolute, readme)
    text = re.sub(r"^    pip install \.( +)", r"    pip install deepbore\1", text, flags=re.MULTILINE)
    return text.replace("# in a copy of the repository, Python", "# Python")


def current() -> str:
    """The text of now."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return long_description((ROOT / "README.md").read_text(encoding="utf-8"), project["urls"]["Source"])


if __name__ == "__main__":
    TARGET.write_text(current(), encoding="utf-8")
