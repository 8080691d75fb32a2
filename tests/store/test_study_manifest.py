import hashlib
import os
from pathlib import Path

import pytest

import ahalab.store.manifest as manifest_module
from ahalab.errors import InputError
from ahalab.records.base import decode_file
from ahalab.records.manifest import Manifest
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, files_below, root_digest, write_manifest

FILES = {
    "study.yaml": b"name: x\n",
    "base/answers.jsonl": b"{}\n",
    "base/floor.jsonl": b"",
    "z.json": b"1",
}


@pytest.fixture
def study(tmp_path: Path) -> StudyPaths:
    paths = StudyPaths(tmp_path / "results" / "demo")
    for name, payload in FILES.items():
        (paths.root / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.root / name).write_bytes(payload)
    return paths


def root_of(study: StudyPaths, plan: str = "p") -> str:
    return root_digest(plan, evidence_entries(study.root))


def test_every_file_stands_in_the_manifest_once_with_size_and_sha256(study: StudyPaths) -> None:
    manifest = write_manifest(study, "p")
    listed = {entry.path: (entry.bytes, entry.sha256) for entry in manifest.evidence}
    assert listed == {
        name: (len(payload), hashlib.sha256(payload).hexdigest()) for name, payload in FILES.items()
    }
    assert len(manifest.evidence) == len(FILES)
    assert decode_file(study.manifest.read_bytes(), Manifest, "manifest.json") == manifest


def test_the_root_is_the_digest_of_plan_and_entries_worked_out_by_hand(study: StudyPaths) -> None:
    manifest = write_manifest(study, "p")
    lines = "p\n" + "".join(f"{e.sha256} {e.bytes} {e.path}\n" for e in manifest.evidence)
    assert manifest.root == "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("name", FILES)
def test_the_root_changes_when_any_byte_changes(study: StudyPaths, name: str) -> None:
    before = root_of(study)
    path = study.root / name
    payload = path.read_bytes()
    for at in range(len(payload)):
        path.write_bytes(payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :])
        assert root_of(study) != before
    path.write_bytes(payload + b"\0")
    assert root_of(study) != before
    path.write_bytes(payload)
    assert root_of(study) == before


def test_the_root_changes_when_a_file_is_added_removed_or_renamed_or_the_plan_differs(
    study: StudyPaths,
) -> None:
    roots = {root_of(study), root_of(study, "q")}
    (study.root / "extra").write_bytes(b"")
    roots.add(root_of(study))
    (study.root / "extra").rename(study.root / "other")
    roots.add(root_of(study))
    (study.root / "other").unlink()
    (study.root / "z.json").unlink()
    roots.add(root_of(study))
    assert len(roots) == 5


def test_times_modes_and_empty_folders_do_not_change_the_root(study: StudyPaths) -> None:
    before = root_of(study)
    os.utime(study.root / "z.json", (1, 1))
    (study.root / "z.json").chmod(0o600)
    (study.root / "empty").mkdir()
    assert root_of(study) == before


def test_the_order_in_which_the_folder_lists_its_files_does_not_matter(
    study: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = evidence_entries(study.root)
    scandir = os.scandir

    class Reversed:
        def __init__(self, path: str) -> None:
            with scandir(path) as entries:
                self.entries = iter(sorted(entries, key=lambda e: e.name, reverse=True))

        def __enter__(self) -> "Reversed":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __iter__(self) -> "Reversed":
            return self

        def __next__(self) -> os.DirEntry[str]:
            return next(self.entries)

        def close(self) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    assert [name for name, _, _ in files_below(study.root)] == [e.path for e in before]
    assert evidence_entries(study.root) == before


def test_a_study_that_was_moved_has_the_same_root(study: StudyPaths, tmp_path: Path) -> None:
    before = write_manifest(study, "p")
    study.root.rename(tmp_path / "elsewhere")
    assert write_manifest(StudyPaths(tmp_path / "elsewhere"), "p") == before


@pytest.mark.parametrize("kind", ["link", "folder link", "broken link", "fifo"])
def test_what_is_not_a_plain_file_is_refused(study: StudyPaths, tmp_path: Path, kind: str) -> None:
    path = study.root / "base" / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        target = {
            "link": study.root / "z.json",
            "folder link": tmp_path,
            "broken link": tmp_path / "no",
        }
        path.symlink_to(target[kind])
    with pytest.raises(InputError, match=rf"^{path}: expected a plain file"):
        write_manifest(study, "p")
    assert not study.manifest.exists()


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\udcff"])
def test_a_name_that_could_stand_for_two_entries_is_refused(study: StudyPaths, name: str) -> None:
    (study.root / name).write_bytes(b"")
    with pytest.raises(InputError, match="expected printable file names") as caught:
        evidence_entries(study.root)
    assert str(caught.value).isprintable()


def test_what_is_made_from_the_evidence_is_listed_apart_and_leaves_the_root_alone(
    study: StudyPaths,
) -> None:
    before = write_manifest(study, "p").root
    study.report.write_bytes(b"<html>")
    card = study.run("random", 0).card
    card.parent.mkdir(parents=True, exist_ok=True)
    card.write_bytes(b"# card")
    (study.root / "base" / "report.html").write_bytes(
        b"evidence: only the one at the top is derived"
    )
    manifest = write_manifest(study, "p")
    assert {e.path for e in manifest.derived} == {
        "arms/random/seed-0/adapter/README.md",
        "report.html",
    }
    assert "base/report.html" in [e.path for e in manifest.evidence]
    (study.root / "base" / "report.html").unlink()
    assert write_manifest(study, "p").root == before


def test_the_manifest_does_not_list_itself_and_is_rewritten_only_when_it_changes(
    study: StudyPaths,
) -> None:
    first = write_manifest(study, "p")
    os.utime(study.manifest, (1, 1))
    assert write_manifest(study, "p") == first
    assert study.manifest.stat().st_mtime == 1


def test_a_kill_while_the_manifest_is_written_does_not_seal_the_partial_file(
    study: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_manifest(study, "p")
    assert study.manifest.with_name("manifest.json.partial").exists()
    manifest = write_manifest(study, "p")
    assert {e.path for e in manifest.evidence} == set(FILES)
    assert {p.name for p in study.root.iterdir()} == {
        "base",
        "study.yaml",
        "z.json",
        "manifest.json",
    }


def test_a_big_file_is_hashed_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "big"
    payload = b"0123456789abcdef" * (1 << 17)
    path.write_bytes(payload)
    assert manifest_module.hash_file(path) == hashlib.sha256(payload).hexdigest()


def test_working_files_lie_outside_the_results(tmp_path: Path) -> None:
    assert StudyPaths(tmp_path / "results" / "demo").work == tmp_path / ".work" / "demo"
    assert StudyPaths(tmp_path / "demo").work == tmp_path / ".work" / "demo"
