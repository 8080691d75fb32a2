"""Reads a plan: safe YAML 1.2 into strict structs, every fault named by file, line and column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from ahalab.errors import PlanError
from ahalab.plain_files import read_plain
from ahalab.plan.fields import suggestion
from ahalab.plan.plain_yaml import first_mark
from ahalab.plan.resolve import resolve
from ahalab.records.base import digest, encode, to_plain
from ahalab.records.plan import (
    AnalysisSpec,
    ArmSpec,
    EndpointSpec,
    EvaluationSpec,
    ModelSpec,
    Plan,
    TaskSpec,
    TemplateSpec,
    TrainingSpec,
    ValidationSpec,
)

MAX_PLAN_BYTES = 1 << 16
SURROGATE = re.compile("[\ud800-\udfff]")  # an escape can write one, no file can hold it
LINE_BREAKS = re.compile(rb"\\u(?:0085|2028|2029|feff)")  # in JSON; YAML reads them as breaks
YAML_TAG = "tag:yaml.org,2002:"
PLAIN_TAGS = {YAML_TAG + tag for tag in ("map", "seq", "str", "int", "float", "bool", "null")}
STRUCTS = {
    "": Plan,
    "model": ModelSpec,
    "task": TaskSpec,
    "arms": ArmSpec,
    "training": TrainingSpec,
    "evaluation": EvaluationSpec,
    "evaluation.endpoint": EndpointSpec,
    "evaluation.templates": TemplateSpec,
    "validation": ValidationSpec,
    "analysis": AnalysisSpec,
}


def load_plan(path: Path) -> Plan:
    """Read, check and resolve a plan; every default that changes a run's meaning is made explicit.

    Raises:
        PlanError: Unreadable, malformed or inconsistent; the message names file, line and column.
    """
    try:
        payload = read_plain(path)
    except OSError as error:
        raise PlanError(
            f"{path}: expected a study plan, or a folder of results that holds one, found: "
            f"{error.strerror}. `ahalab init` writes a plan."
        ) from error
    if len(payload) > MAX_PLAN_BYTES:
        raise PlanError(f"{path}: expected a plan of at most 64 kB, found {len(payload)} bytes.")
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(
            f"{path}: expected UTF-8 text, found a bad byte at {error.start}."
        ) from error
    return parse_plan(text, str(path))


def parse_plan(text: str, place: str) -> Plan:
    """Read a plan from text; see `load_plan`."""
    node, tree = _read_yaml(text, place)
    if not isinstance(tree, dict):
        raise PlanError(
            f"{place}:1: expected a mapping of plan keys, found {type(tree).__name__}. "
            "`ahalab init` writes a plan to start from."
        )
    arms = tree.get("arms")
    if isinstance(arms, list):  # an arm may be given by its name alone
        tree["arms"] = [{"name": arm} if isinstance(arm, str) else arm for arm in arms]
    try:
        plan = msgspec.convert(tree, Plan)
    except msgspec.ValidationError as error:
        raise PlanError(_place_fault(str(error), node, place)) from error
    try:
        return resolve(plan)
    except PlanError as error:
        key, _, rest = str(error).partition(":")
        raise PlanError(f"{place}:{_mark(node, key.split('.'))}: {key}:{rest}") from error


def _read_yaml(text: str, place: str) -> tuple[Node | None, Any]:
    yaml = YAML(typ="safe", pure=True)
    try:
        _refuse_marks(text, place)
        node = yaml.compose(StringIO(text))
        _check_plain(node, place)
        return node, yaml.load(StringIO(text))
    except (YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise PlanError(f"{place}:{where}: expected YAML 1.2, found: {problem}.") from error


def _refuse_marks(text: str, place: str) -> None:
    """Refuse anchors, aliases and tags: a plan says each thing once, and plainly.

    Raises:
        PlanError: There is one; the message names line and column.
    """
    found = first_mark(text)
    if found is not None:
        raise PlanError(
            f"{place}:{found.line}:{found.column}: expected no anchor, no alias and no tag, found "
            f"{found.name[:80]!r}. Write the value out where it belongs, and quote it if it is "
            "text."
        )


def _check_plain(root: Node | None, place: str) -> None:
    """Refuse what a plan has no use for: dates, and keys that are no text.

    Raises:
        PlanError: There is one; the message names line and column.
    """
    left = [] if root is None else [root]
    while left:
        node = left.pop()
        where = f"{place}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        if str(node.tag) not in PLAIN_TAGS:
            kind = str(node.tag).rpartition(":")[2][:80]
            raise PlanError(
                f"{where}: expected text, a number, a list or a mapping, found {kind!r}. "
                "Quote it if it is text."
            )
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if str(key.tag) != YAML_TAG + "str" or not key.value.isprintable():
                    mark = key.start_mark
                    raise PlanError(
                        f"{place}:{mark.line + 1}:{mark.column + 1}: expected a key of plain text, "
                        f"found {str(key.value)[:80]!r}. Quote a number that is a name."
                    )
                left += (key, value)
        elif isinstance(node, SequenceNode):
            left += node.value
        elif SURROGATE.search(node.value):
            raise PlanError(
                f"{where}: expected text, found half of a character ({node.value!r:.80})."
            )


def _place_fault(message: str, node: Node | None, place: str) -> str:
    """Turn msgspec's message with its `$.path` into one with line, column and the nearest key."""
    fault, _, path = message.partition(" - at `$")
    parts = [p for p in re.split(r"[.\[\]`]+", path.replace("...", "0")) if p]
    unknown = re.search(r"unknown field `(.+?)`", fault)
    if unknown:
        struct = STRUCTS.get(".".join(parts[:2])) or STRUCTS.get(parts[0] if parts else "")
        known = list(struct.__struct_fields__) if struct else []
        key = unknown.group(1)
        inside = ".".join(part for part in parts if not part.isdigit())
        return (
            f"{place}:{_mark(node, [*parts, key])}: unknown key `{key}`"
            f"{' in ' + inside if inside else ''}.{suggestion(key, known)}"
        )
    missing = re.search(r"missing required field `(.+?)`", fault)
    where = f"{'.'.join(parts)}: " if parts else ""
    if missing:
        return (
            f"{place}:{_mark(node, parts)}: {where}the key `{missing.group(1)}` is missing. Add it."
        )
    return f"{place}:{_mark(node, parts)}: {where}{fault[0].lower() + fault[1:]}. Mend the value."


def _mark(node: Node | None, path: Sequence[str]) -> str:
    """Return `line:column` of the deepest node that the path reaches."""
    line, column = 0, 0
    for part in path:
        found = None
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if key.value == part:
                    line, column, found = key.start_mark.line, key.start_mark.column, value
        elif isinstance(node, SequenceNode) and part.isdigit() and int(part) < len(node.value):
            found = node.value[int(part)]
            line, column = found.start_mark.line, found.start_mark.column
        if found is None:
            break
        node = found
    return f"{line + 1}:{column + 1}"


def dump_plan(plan: Plan) -> str:
    """Return the resolved plan as YAML that reads back to the same digest."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 100
    yaml.allow_unicode = LINE_BREAKS.search(encode(plan)) is None
    stream = StringIO()
    stream.write(f"# Frozen by ahalab. Digest: {digest(plan)}\n")
    yaml.dump(_readable(to_plain(plan)), stream)
    return stream.getvalue()


def _readable(tree: Any) -> Any:
    """Turn tuples into lists, and write floats so that YAML 1.2 reads them back as floats."""
    if isinstance(tree, dict):
        return {key: _readable(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_readable(value) for value in tree]
    return tree


def differing_keys(ours: Plan, theirs: Plan) -> list[str]:
    """Return `key: ours, theirs` for every key in which two resolved plans differ."""
    absent = object()

    def leaves(tree: Any, prefix: str = "") -> dict[str, Any]:
        if isinstance(tree, dict) and tree:
            found: dict[str, Any] = {}
            for key, value in tree.items():
                found |= leaves(value, f"{prefix}.{key}" if prefix else str(key))
            return found
        return {prefix: tree}

    def shown(value: object) -> str:
        return "absent" if value is absent else repr(value)  # repr tells 1 from 1.0 and from True

    left, right = leaves(to_plain(ours)), leaves(to_plain(theirs))
    found = []
    for key in sorted(left.keys() | right.keys()):
        here, there = shown(left.get(key, absent)), shown(right.get(key, absent))
        if here != there:
            found.append(f"{key}: {here} here, {there} there")
    return found
