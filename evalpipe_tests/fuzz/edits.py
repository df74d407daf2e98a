"""Damage that knows structure: to the values, keys and order of records.

Belongs here: edits of a list of records. Does not belong here: odd values themselves (``values.py``),
or damage to the bytes of a file (``damage.py``).
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from evalpipe_tests.fuzz.judge import MARKER
from evalpipe_tests.fuzz.values import IDS, TIMES, deep, odd, one_of, twice
from evalpipe_tests.fuzz.words import word

Records = list[Any]
Place = tuple[Any, ...]

_MANY_PLACES = 3000
_TIME_WORDS = ("time", "_at", "start", "end", "created", "date", "timestamp", "Time", "nano")
_ID_WORDS = ("id", "Id", "ID", "uuid", "parent", "Uuid", "hash", "key", "name")


def places(value: Any) -> list[tuple[Place, Any]]:
    """All values inside with their paths, the outermost first."""
    out: list[tuple[Place, Any]] = []
    queue: list[tuple[Place, Any]] = [((), value)]
    while queue and len(out) < _MANY_PLACES:
        place, item = queue.pop()
        out.append((place, item))
        inner = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        queue += [((*place, key), member) for key, member in inner]
    return out


def get(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def put(value: Any, place: Place, new: Any) -> Any:
    """The value with another one at a place; changes it where it can."""
    if not place:
        return new
    get(value, place[:-1])[place[-1]] = new
    return value


def put_all(records: Records, new: Callable[[Place, Any], Any]) -> Records:
    """Every value replaced by what is made of it; what is gone with the value that held it is passed over."""
    for place, _ in places(records)[1:]:
        try:
            put(records, place, new(place, get(records, place)))
        except (KeyError, IndexError, TypeError):
            continue
    return records


def _pick(records: Records, choose: random.Random, holds: Callable[[Place, Any], bool]) -> Place | None:
    found = [place for place, value in places(records)[1:] if holds(place, value)]
    return choose.choice(found) if found else None


def _of_type(kind: type) -> Callable[[Place, Any], bool]:
    return lambda _, value: isinstance(value, kind) and bool(value)


def _named(words: tuple[str, ...]) -> Callable[[Place, Any], bool]:
    return lambda place, _: isinstance(place[-1], str) and place[-1].endswith(words)


def replace_value(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda *_: True)
    return records if place is None else put(records, place, odd(choose))


def replace_time(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda p, v: _named(_TIME_WORDS)(p, v) or (isinstance(v, str) and v[:3] == "202"))
    return records if place is None else put(records, place, one_of(TIMES, choose))


def replace_all_times(records: Records, _: Records, choose: random.Random) -> Records:
    new = one_of(TIMES, choose)
    return put_all(records, lambda _, v: new if isinstance(v, str) and v[:3] == "202" and choose.random() < 0.9 else v)


def replace_id(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, _named(_ID_WORDS))
    return records if place is None else put(records, place, one_of(IDS, choose))


def equal_ids(records: Records, _: Records, choose: random.Random) -> Records:
    """Every id of a name, or of all names, becomes one of them: parents are their own children."""
    first = _pick(records, choose, _named(_ID_WORDS))
    if first is None:
        return records
    new, is_all = get(records, first), choose.random() < 0.3

    def of(place: Place, value: Any) -> Any:
        is_one = _named(_ID_WORDS)(place, None) and (is_all or place[-1] == first[-1])
        return copy.deepcopy(new) if is_one else value

    return put_all(records, of)


def swap_values(records: Records, _: Records, choose: random.Random) -> Records:
    """Two values of one key change places, or a value takes that of any other place."""
    first = _pick(records, choose, lambda *_: True)
    if first is None:
        return records
    second = _pick(records, choose, lambda p, _: p[-1] == first[-1] or choose.random() < 0.05)
    if second is None:
        return records
    a, b = copy.deepcopy(get(records, first)), copy.deepcopy(get(records, second))
    records = put(records, first, b)
    try:
        return put(records, second, a)
    except (KeyError, IndexError, TypeError):  # the second lay within the first
        return records


def drop_key(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda p, _: isinstance(p[-1], str))
    if place is not None:
        del get(records, place[:-1])[place[-1]]
    return records


def drop_key_everywhere(records: Records, _: Records, choose: random.Random) -> Records:
    first = _pick(records, choose, lambda p, _: isinstance(p[-1], str))
    for place, _ in places(records)[1:] if first else ():
        try:
            if place[-1] == first[-1]:  # type: ignore[index]
                del get(records, place[:-1])[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # gone with what held it
    return records


def rename_key(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda p, _: isinstance(p[-1], str))
    if place is not None:
        holder = get(records, place[:-1])
        other = choose.choice(
            ("", "\x00", place[-1].upper(), f"{place[-1]}.0.x", MARKER, "type", "id", "role", "x" * 70_000)
        )
        holder[other] = holder.pop(place[-1])
    return records


def shuffle_keys(records: Records, _: Records, choose: random.Random) -> Records:
    for _, value in places(records):
        if isinstance(value, dict) and choose.random() < 0.7:
            items = list(value.items())
            choose.shuffle(items)
            value.clear()
            value.update(items)
    return records


def double_key(records: Records, other: Records, choose: random.Random) -> Records:
    """A key that stands twice in one object, with another value."""
    place = _pick(records, choose, _of_type(dict))
    if place is not None:
        holder = get(records, place)
        key = choose.choice(list(holder))
        news = (odd(choose), copy.deepcopy(holder[key]), copy.deepcopy(other[0]) if other else None)
        items = [(twice(key, choose), choose.choice(news)), *holder.items()]
        if choose.random() < 0.5:
            items.append(items.pop(0))
        holder.clear()
        holder.update(items)
    return records


def change_list(records: Records, other: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, _of_type(list))
    if place is not None:
        items = get(records, place)
        put(records, place, _changed(items, [*copy.deepcopy(other), *items], choose))
    return records


def change_records(records: Records, other: Records, choose: random.Random) -> Records:
    return _changed(records, other, choose)


def _changed(items: Records, other: Records, choose: random.Random) -> Records:
    kind = choose.randrange(9)
    if kind == 0:
        return items[::-1]
    if kind == 1:
        choose.shuffle(items)
        return items
    if kind == 2:
        return [copy.deepcopy(item) for item in items for _ in range(choose.choice((1, 1, 2, 3)))]
    if kind == 3:
        return [item for item in items if choose.random() < 0.7]
    if kind == 4 and other:
        items.insert(choose.randrange(len(items) + 1), copy.deepcopy(choose.choice(other)))
        return items
    if kind == 5:
        items.insert(choose.randrange(len(items) + 1), odd(choose))
        return items
    if kind == 6:
        return copy.deepcopy(items[choose.randrange(len(items) + 1) :]) + items[: choose.randrange(len(items) + 1)]
    if kind == 7 and len(json.dumps(items)) < 3000:
        return [copy.deepcopy(item) for _ in range(choose.choice((5, 40))) for item in items]
    return items[: choose.randrange(len(items) + 1)]


def interleave(records: Records, other: Records, choose: random.Random) -> Records:
    """Records of two files by turns, each in its order."""
    mine, theirs, out = list(records), copy.deepcopy(other), []
    while mine or theirs:
        out.append((mine if mine and (not theirs or choose.random() < 0.5) else theirs).pop(0))
    return out


def nest(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda *_: True)
    return records if place is None else put(records, place, deep(choose))


def wrap(records: Records, _: Records, choose: random.Random) -> Records:
    place = _pick(records, choose, lambda *_: True)
    if place is None:
        return records
    value = get(records, place)
    inner = json.dumps(value)
    return put(
        records, place, choose.choice(([value], {"data": value}, {"text": value}, [[value]], inner, json.dumps(inner)))
    )


def within_text(records: Records, _: Records, choose: random.Random) -> Records:
    """Damage inside JSON that stands in a text, such as arguments."""
    place = _pick(records, choose, lambda _, v: isinstance(v, str) and v[:1] in ("{", "["))
    if place is None:
        return mark_texts(records, _, choose)
    text = get(records, place)
    try:
        inner = [json.loads(text)]
    except ValueError:
        inner = [text]
    inner = replace_value(inner, [], choose) if isinstance(inner[0], dict | list) else inner
    new = json.dumps(inner[0]) if choose.random() < 0.6 else text[: choose.randrange(len(text) + 1)]
    return put(records, place, new)


def mark_texts(records: Records, _: Records, choose: random.Random) -> Records:
    """A word that nothing but texts may hold, at the end of many texts."""
    return put_all(records, lambda _, v: f"{v} {MARKER}" if isinstance(v, str) and choose.random() < 0.3 else v)


def say_word(records: Records, family: str, choose: random.Random) -> Records:
    """A word that the format knows, as a text, before a text, or as the value of a short one."""
    place = _pick(records, choose, lambda _, v: isinstance(v, str) and (len(v) < 30 or choose.random() < 0.2))
    if place is None:
        return records
    old, new = get(records, place), word(choose, family)
    return put(
        records, place, choose.choice((new, new, new, f"{new} {old}", f"{old}\n{new}", f"{new}{word(choose, family)}"))
    )


def add_key(records: Records, family: str, choose: random.Random) -> Records:
    """A key that the format knows, with an odd value, a word, or a value from elsewhere in the log."""
    place = _pick(records, choose, _of_type(dict))
    other = _pick(records, choose, lambda *_: True)
    if place is not None and other is not None:
        values = (
            odd(choose),
            word(choose, family),
            copy.deepcopy(get(records, other)),
            {word(choose, family): 1},
            [{"type": word(choose, family)}],
        )
        get(records, place)[word(choose, family)] = choose.choice(values)
    return records


EDITS: tuple[Callable[[Records, Records, random.Random], Records], ...] = (
    replace_value, replace_value, replace_value, replace_time, replace_all_times, replace_id, equal_ids, swap_values,
    drop_key, drop_key, drop_key_everywhere, rename_key, shuffle_keys, double_key, change_list, change_list, change_records,
    change_records, interleave, nest, wrap, within_text, mark_texts,
)  # fmt: skip

#: Edits that are told the family instead of another log.
WORD_EDITS: tuple[Callable[[Records, str, random.Random], Records], ...] = (say_word, say_word, add_key)
