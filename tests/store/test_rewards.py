"""The code of users' own rewards: found without running it, digested, copied, loaded."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.store.rewards import accepted_arguments, copy_rewards, find_reward, load_reward

ONE = "def brief(completions, **kwargs):\n    return [1.0] * len(completions)\n"


@pytest.fixture(autouse=True)
def clean_modules() -> Iterator[None]:
    before, path = set(sys.modules), list(sys.path)
    yield
    assert sys.path == path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, name: str = "my_reward_module.py", text: str = ONE) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_module_is_found_and_digested_without_being_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    write(tmp_path, text=f"from pathlib import Path\nPath({str(ran)!r}).touch()\n" + ONE)
    source = find_reward("my_reward_module:brief", [tmp_path])
    assert (source.files, source.beside) == (("my_reward_module.py",), True)
    assert len(source.digest) == 71
    assert not ran.exists()
    load_reward(source)
    assert ran.exists()


def test_the_digest_is_that_of_every_file_of_a_package(tmp_path: Path) -> None:
    write(tmp_path, "my_reward_package/__init__.py", "")
    write(tmp_path, "my_reward_package/inner/__init__.py", "")
    helper = write(tmp_path, "my_reward_package/inner/helper.py", "FACTOR = 1.0\n")
    write(
        tmp_path,
        "my_reward_package/main.py",
        "from my_reward_package.inner.helper import FACTOR\n"
        "def brief(completions, **_):\n    return [FACTOR] * len(completions)\n",
    )
    write(tmp_path, "elsewhere.py", "")
    name = "my_reward_package.main:brief"
    source = find_reward(name, [tmp_path])
    assert len(source.files) == 4
    first = source.digest
    assert load_reward(source)(completions=[1, 2]) == [1.0, 1.0]
    helper.write_text("FACTOR = 2.0\n", encoding="utf-8")
    assert find_reward(name, [tmp_path]).digest != first


def test_the_digest_does_not_depend_on_where_the_code_lies(tmp_path: Path) -> None:
    write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    name = "my_reward_module:brief"
    assert find_reward(name, [tmp_path / "a"]).digest == find_reward(name, [tmp_path / "b"]).digest


def test_the_code_beside_the_plan_comes_before_an_installed_package(tmp_path: Path) -> None:
    assert not find_reward("json:dumps", [tmp_path]).beside
    write(tmp_path, "json.py")
    assert find_reward("json:dumps", [tmp_path]).beside


def test_loading_writes_nothing_and_takes_the_code_of_this_folder(tmp_path: Path) -> None:
    for folder, value in (("a", "1.0"), ("b", "2.0")):
        write(tmp_path / folder, text=ONE.replace("1.0", value))
    found = [
        load_reward(find_reward("my_reward_module:brief", [tmp_path / folder]))(completions=[0])
        for folder in ("a", "b", "a")
    ]
    assert found == [[1.0], [2.0], [1.0]]
    assert sorted(p.name for p in tmp_path.rglob("*")) == [
        "a", "b", "my_reward_module.py", "my_reward_module.py",
    ]  # fmt: skip


def test_a_coroutine_function_is_run_to_its_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        text="import asyncio\n"
        "async def brief(completions, **_):\n"
        "    await asyncio.sleep(0)\n"
        "    return [0.5] * len(completions)\n",
    )
    assert load_reward(find_reward("my_reward_module:brief", [tmp_path]))(completions=[1]) == [0.5]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("def other(): ...\n", "expected a function brief in my_reward_module, found none"),
        ("brief = 3\n", "expected a function brief in my_reward_module, found int"),
        ("import nothing_of_this_name\n", "found: ModuleNotFoundError"),
        ("def brief(:\n", "found: SyntaxError"),
        ("raise SystemExit(3)\n", "found: SystemExit: 3"),
    ],
)
def test_code_that_can_not_be_loaded_is_named(tmp_path: Path, text: str, fault: str) -> None:
    write(tmp_path, text=text)
    with pytest.raises(InputError, match=fault) as caught:
        load_reward(find_reward("my_reward_module:brief", [tmp_path]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["no_such_module_here:f", "no.such:f", "sys:exit", "math:sqrt"])
def test_a_module_that_is_not_there_or_no_python_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a module"):
        find_reward(name, [tmp_path])


def test_an_empty_folder_of_the_name_is_no_module(tmp_path: Path) -> None:
    (tmp_path / "my_reward_module").mkdir()
    with pytest.raises(InputError, match="expected a module of Python files"):
        find_reward("my_reward_module:brief", [tmp_path])


def test_what_lies_beside_the_plan_is_copied_and_what_is_installed_is_not(tmp_path: Path) -> None:
    write(tmp_path / "plan")
    sources = [
        find_reward(n, [tmp_path / "plan"]) for n in ("my_reward_module:brief", "json:dumps")
    ]
    copy_rewards(sources, tmp_path / "study")
    assert [p.name for p in (tmp_path / "study").iterdir()] == ["my_reward_module.py"]
    again = find_reward("my_reward_module:brief", [tmp_path / "study"])
    assert again.digest == sources[0].digest


def test_code_of_more_than_a_megabyte_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "plan", text=ONE + "#" * (1 << 20))
    with pytest.raises(InputError, match="expected at most 1 MB of code"):
        copy_rewards([find_reward("my_reward_module:brief", [tmp_path / "plan"])], tmp_path / "s")


def takes_all(completions: Any, **kwargs: Any) -> None: ...
def takes_two(completions: Any, answer: Any, bonus: float = 1.0) -> None: ...
def takes_unknown(completions: Any, labels: Any) -> None: ...
def takes_places(completions: Any, /) -> None: ...


def test_arguments_are_checked_before_anything_runs() -> None:
    offered = ("completions", "answer")
    assert accepted_arguments("m:f", takes_all, offered) is None
    assert accepted_arguments("m:f", takes_two, offered) == {"completions", "answer", "bonus"}
    with pytest.raises(InputError, match=r"m:f: expected arguments among .*found `labels`"):
        accepted_arguments("m:f", takes_unknown, offered)
    with pytest.raises(InputError, match="found `completions`"):
        accepted_arguments("m:f", takes_places, offered)
