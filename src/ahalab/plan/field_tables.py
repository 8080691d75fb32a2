"""Writes the tables that `fields.py` reads: `python -m ahalab.plan.field_tables` ([train])."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ahalab.plan.fields import kind_of

NAMES = {int: "int", float: "float", bool: "bool", str: "str", type(None): "null"}


def kinds(annotation: Any) -> set[str]:
    """Return the JSON kinds that a type annotation takes."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return set().union(*(kinds(a) for a in typing.get_args(annotation)))
    if origin is typing.Literal:
        return {kind_of(v) for v in typing.get_args(annotation)}
    if annotation in NAMES:
        return {NAMES[annotation]}
    if origin in (list, tuple, set) or annotation in (list, tuple, set):
        return {"list"}
    if origin is dict or annotation is dict:
        return {"dict"}
    return {"str"}  # enums and paths are written as text


def table(config: type, package: str) -> dict[str, Any]:
    """Return the table of one configuration dataclass."""
    hints = typing.get_type_hints(config)
    fields = {}
    for field in dataclasses.fields(config):
        if not field.init:
            continue
        default = field.default if field.default is not dataclasses.MISSING else None
        plain = (
            default if kind_of(default) in {"null", "bool", "int", "float", "str"} else str(default)
        )
        fields[field.name] = {"kinds": sorted(kinds(hints[field.name])), "default": plain}
    return {"package": package, "version": version(package), "fields": dict(sorted(fields.items()))}


def main() -> None:
    """Write both tables beside this file."""
    from peft import LoraConfig
    from trl import GRPOConfig

    folder = Path(__file__).parent / "fields"
    for config, package in ((GRPOConfig, "trl"), (LoraConfig, "peft")):
        text = json.dumps(table(config, package), indent=1, sort_keys=True) + "\n"
        (folder / f"{package}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
