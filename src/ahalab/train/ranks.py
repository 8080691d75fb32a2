"""The processes of one run: which of them writes, and what they tell one another.

One process needs none of this. Several are started by `torchrun`, each with its place in the
environment; the first one (rank 0) holds the lock, writes every row and marks the checkpoints.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import Any, TypeVar

from ahalab.errors import InputError, PlanError
from ahalab.records.plan import Plan

T = TypeVar("T")
WATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those of its run."""

    index: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.index == 0

    def gather(self, items: list[T]) -> list[T]:
        """Return the items of every process, in the order of the ranks."""
        if self.count == 1:
            return items
        from accelerate.utils import gather_object

        return list(gather_object(items))

    def from_first(self, value: T) -> T:
        """Return what the first process holds; every process calls this."""
        if self.count == 1:
            return value
        from accelerate.utils import broadcast_object_list

        held: list[Any] = [value]
        broadcast_object_list(held)
        return held[0]  # type: ignore[no-any-return]

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.count > 1:
            import torch

            torch.distributed.barrier()

    def leave(self) -> None:
        """Part from the others, in good order."""
        if self.count > 1:
            import torch

            torch.distributed.destroy_process_group()


ALONE = Ranks()


def join(plan: Plan) -> Ranks:
    """Take this process's place among those that the plan asks for.

    Raises:
        PlanError: It was started with another number of processes.
        InputError: The processes can't talk to one another.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    wanted = plan.training.processes
    if count != wanted:
        how = f"torchrun --nproc_per_node {wanted} -m ahalab train ..." if wanted > 1 else "ahalab"
        raise PlanError(
            f"training.processes: expected {wanted} processes, found {count}. Start it with: {how}"
        )
    if count == 1:
        return ALONE
    _end_with_parent()
    from accelerate import PartialState

    state = PartialState(cpu=plan.model.device == "cpu")
    if state.num_processes != count:
        raise InputError(
            f"train: expected {count} processes that talk to one another, found "
            f"{state.num_processes} ({state.distributed_type}). Start them with torchrun."
        )
    return Ranks(int(state.process_index), count)


def _end_with_parent() -> None:
    """End this process when `torchrun` is gone, however it went: nobody else would."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="launcher", daemon=True).start()
