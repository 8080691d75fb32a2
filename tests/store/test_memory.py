"""What memory is left: the least of what machine and container allow."""

from __future__ import annotations

from pathlib import Path

from ahalab.store.memory import available_bytes, resident_bytes

MEMINFO = "MemTotal:       2000 kB\nMemAvailable:   1000 kB\nMemFree: 1 kB\n"


def meminfo(folder: Path, text: str = MEMINFO) -> Path:
    path = folder / "meminfo"
    path.write_text(text)
    return path


def test_a_machine_without_a_container_tells_what_it_has(tmp_path: Path) -> None:
    assert available_bytes(meminfo(tmp_path), tmp_path / "none") == 1000 * 1024


def test_a_containers_limit_counts_with_its_cache_given_back(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("600000\n")
    (tmp_path / "memory.current").write_text("500000\n")
    assert available_bytes(meminfo(tmp_path), tmp_path) == 100_000
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 50000\n")
    assert available_bytes(meminfo(tmp_path), tmp_path) == 150_000


def test_an_older_containers_limit_counts_too(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("600000\n")
    (tmp_path / "memory/memory.usage_in_bytes").write_text("700000\n")
    assert available_bytes(meminfo(tmp_path), tmp_path) == 0


def test_a_container_without_a_limit_leaves_the_machines(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    assert available_bytes(meminfo(tmp_path), tmp_path) == 1000 * 1024


def test_where_nothing_tells_it_is_not_known(tmp_path: Path) -> None:
    assert available_bytes(tmp_path / "none", tmp_path / "none") is None
    assert available_bytes(meminfo(tmp_path, "MemAvailable: many\n"), tmp_path / "none") is None


def test_this_process_holds_something() -> None:
    assert 10**6 < resident_bytes() < 10**11
