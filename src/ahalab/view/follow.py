"""Follows studies: finds them, and brings their indexes up to date, again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError, LockedError
from ahalab.store.lock import WriterLock
from ahalab.view.index import Extent, Indexer
from ahalab.view.sources import BrokenStudy, Study, find_studies

LOOK_SECONDS = 1.0  # between two looks at the journals
Report = Callable[[Study, Extent], None]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is shown at one time."""

    studies: dict[str, Study]
    broken: tuple[BrokenStudy, ...]
    faults: tuple[str, ...]  # why an index is not up to date


class Follower(threading.Thread):
    """A thread that keeps the indexes of all studies current until it is stopped.

    Of several viewers of one study, the first keeps its index and the others read it.
    """

    def __init__(self, folders: Sequence[Path], report: Report) -> None:
        super().__init__(name="follower", daemon=True)
        self._folders = folders
        self._report = report
        self._stopped = threading.Event()
        self._indexers: dict[str, Indexer] = {}
        self._locks: dict[str, ExitStack] = {}
        self._catalogue = Catalogue({}, (), ())
        self._find(())

    @property
    def catalogue(self) -> Catalogue:
        """What was found at the last look."""
        return self._catalogue

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(LOOK_SECONDS)
        for lock in self._locks.values():
            lock.close()

    def look(self) -> None:
        """Find the studies and index what they committed since the last look."""
        self._find(self._catalogue.faults)
        faults = []
        for study in self._catalogue.studies.values():
            try:
                if self._holds(study):
                    self._sync(study)
            except InputError as error:
                faults.append(str(error))
        self._find(tuple(faults))

    def stop(self) -> None:
        """End after the commit that is being made, and wait for it."""
        self._stopped.set()
        self.join()

    def _find(self, faults: tuple[str, ...]) -> None:
        studies, broken = find_studies(self._folders)
        self._catalogue = Catalogue({study.id: study for study in studies}, tuple(broken), faults)

    def _sync(self, study: Study) -> None:
        indexer = self._indexers.get(study.id)
        if indexer is None or indexer.study != study:
            indexer = self._indexers[study.id] = Indexer(study)
        indexer.sync(lambda extent: self._report(study, extent), self._stopped.is_set)

    def _holds(self, study: Study) -> bool:
        """Hold the index's lock from now on; False while another viewer does."""
        if study.id in self._locks:
            return True
        stack, lock = ExitStack(), Indexer(study).path.with_suffix(".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            stack.enter_context(WriterLock(lock))
        except LockedError:
            return False
        except OSError as error:
            raise InputError(
                f"{error.filename}: expected a cache folder to keep the index in, found: "
                f"{error.strerror}. Set XDG_CACHE_HOME to a folder that can be written to."
            ) from error
        self._locks[study.id] = stack
        return True
