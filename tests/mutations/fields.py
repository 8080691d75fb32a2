"""Finds every field of a record's struct in a file, and changes it to another sound value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import inspect

Path = tuple[str | int, ...]
ABSENT = object()


@dataclass(frozen=True, slots=True)
class Place:
    """One field of one struct within a JSON tree."""

    owner: str  # name of the struct
    field: str
    path: Path
    value: Any
    type: inspect.Type
    key: str = ""  # of a dict whose values have no schema

    @property
    def label(self) -> str:
        """Name it as `Struct.field`, or `Struct.field[key]`."""
        return f"{self.owner}.{self.field}" + (f"[{self.key}]" if self.key else "")


def struct_fields(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield (struct, field) of a record and of everything nested in it.

    A field that is a struct counts by the struct's fields; one that has a single value, as
    `schema`, is left out: anything else there is no record of that kind.
    """
    seen: set[str] = set()
    todo = [inspect.type_info(kind)]
    while todo:
        at = todo.pop()
        if isinstance(at, inspect.StructType):
            if at.cls.__name__ in seen:
                continue
            seen.add(at.cls.__name__)
            for field in at.fields:
                if not _is_constant(field.type) and not _is_struct(field.type):
                    yield at.cls.__name__, field.name
                todo.append(field.type)
        else:
            todo += _inner(at)


def _is_constant(at: inspect.Type) -> bool:
    return isinstance(at, inspect.LiteralType) and len(at.values) == 1


def _is_struct(at: inspect.Type) -> bool:
    """Say whether a field is one struct, whatever stands in it; one that may be null is not."""
    return all(isinstance(t, inspect.StructType) for t in _options(at))


def _inner(at: inspect.Type) -> list[inspect.Type]:
    if isinstance(at, inspect.UnionType):
        return list(at.types)
    if isinstance(at, inspect.VarTupleType | inspect.ListType):
        return [at.item_type]
    if isinstance(at, inspect.TupleType):
        return list(at.item_types)
    if isinstance(at, inspect.DictType):
        return [at.value_type]
    return []


def places(tree: Any, kind: Any) -> Iterator[Place]:
    """Yield every field that a tree holds, in order; a union of tagged structs by its tag."""
    yield from _walk(tree, inspect.type_info(kind), ())


def _walk(tree: Any, at: inspect.Type, path: Path) -> Iterator[Place]:
    struct = _struct(tree, at)
    if struct is not None:
        for field in struct.fields:
            value = tree.get(field.encode_name, ABSENT)
            if value is not ABSENT:
                here = (*path, field.encode_name)
                yield from _field(struct.cls.__name__, field.name, here, value, field.type)
        if struct.tag_field is not None:
            here = (*path, struct.tag_field)
            tag = inspect.StrType()
            yield Place(struct.cls.__name__, struct.tag_field, here, struct.tag, tag)
        return
    if isinstance(tree, list):
        items = next((t for t in _options(at) if _inner(t)), None)
        for number, item in enumerate(tree):
            if items is not None:
                yield from _walk(item, _inner(items)[0], (*path, number))
    elif isinstance(tree, dict):
        items = next((t for t in _options(at) if isinstance(t, inspect.DictType)), None)
        for key, item in tree.items():
            if items is not None:
                yield from _walk(item, items.value_type, (*path, key))


def _field(owner: str, name: str, path: Path, value: Any, at: inspect.Type) -> Iterator[Place]:
    if _is_constant(at):
        return
    if _struct(value, at) is None or any(isinstance(t, inspect.NoneType) for t in _options(at)):
        yield Place(owner, name, path, value, at)
    if isinstance(value, dict) and _struct(value, at) is None and not _holds_structs(at):
        for key, item in value.items():
            inner = next(t for t in _options(at) if isinstance(t, inspect.DictType)).value_type
            yield Place(owner, name, (*path, key), item, inner, key)
    yield from _walk(value, at, path)


def _holds_structs(at: inspect.Type) -> bool:
    return any(isinstance(t, inspect.StructType) or _holds_structs(t) for t in _inner(at))


def _options(at: inspect.Type) -> tuple[inspect.Type, ...]:
    return at.types if isinstance(at, inspect.UnionType) else (at,)


def _struct(tree: Any, at: inspect.Type) -> inspect.StructType | None:
    """Return which struct a tree is, or None."""
    if not isinstance(tree, dict):
        return None
    found = [t for t in _options(at) if isinstance(t, inspect.StructType)]
    tagged = [t for t in found if t.tag_field and tree.get(t.tag_field) == t.tag]
    return (tagged or [t for t in found if t.tag_field is None] or [None])[0]


def another(place: Place) -> Any:
    """Return another value of the same type, or ABSENT where there is none.

    Lists lose their last entry, texts and numbers move a little, names become another name; a
    sentence claims what no comparison does.
    """
    if place.field == "sentence":
        return "It is better by 99.9 points, 95 % interval 99.8 to 100, p < 0.001."
    return _another(place.value, place.type)


def _another(value: Any, at: inspect.Type) -> Any:
    options = _options(at)
    literals = [v for t in options if isinstance(t, inspect.LiteralType) for v in t.values]
    if literals:
        return next((v for v in literals if v != value), ABSENT)
    if value is None:
        return _first_value(options)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.375
    if isinstance(value, str):
        return _another_text(value)
    if isinstance(value, list):
        return _another_list(value, options)
    if _struct(value, at) is not None:
        return None
    if isinstance(value, dict) and value:
        return dict(list(value.items())[:-1])
    return ABSENT


def _another_list(value: list[Any], options: tuple[inspect.Type, ...]) -> Any:
    if not value:
        lists = [one for one in options if _inner(one)]
        made = made_up(lists[0]) if lists else "x"  # of a type that takes anything
        return [made] if made is not ABSENT else ABSENT
    if any(isinstance(one, inspect.TupleType) for one in options):  # of a fixed length
        return [value[0] + 0.375, *value[1:]]
    if all(isinstance(item, int) for item in value) and len(set(value)) > 1:
        return value[::-1]  # token ids, seeds, shapes: as many as before
    return value[:-1]


def made_up(items: inspect.Type) -> Any:
    """Return an entry for an empty list: a struct of made-up values, or a scalar."""
    (item,) = _inner(items)[:1]
    if isinstance(item, inspect.StructType):
        fields = {f.encode_name: _first_value(_options(f.type)) for f in item.fields}
        return ABSENT if ABSENT in fields.values() else fields
    return _first_value(_options(item))


def _another_text(value: str) -> str:
    head, mark, rest = value.partition("sha256:")
    if mark and not head:
        return "sha256:" + ("0" if rest[:1] != "0" else "1") + rest[1:]
    if len(value) == 64 and all(c in "0123456789abcdef" for c in value):
        return ("0" if value[0] != "0" else "1") + value[1:]
    return f"{value}x"


def _first_value(options: tuple[inspect.Type, ...]) -> Any:
    for one in options:
        if isinstance(one, inspect.LiteralType):
            return one.values[0]
        if isinstance(one, inspect.VarTupleType):
            return []
        for kind, value in (
            (inspect.FloatType, 0.5), (inspect.IntType, 1), (inspect.StrType, "x"),
            (inspect.AnyType, "x"),
        ):  # fmt: skip
            if isinstance(one, kind):
                return value
    return ABSENT


def assign(tree: Any, path: Path, value: Any) -> None:
    """Set what stands at a path."""
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value
