"""The process that reads tables of others before we do: `python -m ahalab.tasks.table_worker`.

Arrow's readers are C++. A damaged Arrow file ends the process that reads it without validating it,
and some kilobytes of Parquet hold any number of rows. So each file is read here first, to its end
and under bounds; what is read to its end here is read to its end by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ahalab.killable import Message, limit_cpu, limit_memory, serve

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY_BYTES = 4 << 30
BATCH_ROWS = 1_024


def _ready() -> Message:
    import pyarrow.parquet  # noqa: F401

    limit_memory(MEMORY_BYTES)
    return {"ready": True}


def _batches(path: str) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.endswith(".parquet"):
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
        return
    with pa.memory_map(path) as source, pa.ipc.open_stream(source) as stream:
        yield from stream


def _reply(request: Message) -> Message:
    """Read the files of a dataset; the first fault ends it."""
    limit_cpu(request["seconds"])
    rows = size = 0
    for path in request["files"]:
        try:
            for batch in _batches(path):
                batch.validate(full=True)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows > request["rows"] or size > request["bytes"]:
                    return {"bound": "more"}
        except MemoryError:
            return {"bound": "more"}
        except Exception as error:  # noqa: BLE001 - whatever a reader says of what others wrote
            return {"refused": f"{error}" or type(error).__name__, "file": path}
    return {"rows": rows}


if __name__ == "__main__":
    serve(_ready, _reply)
