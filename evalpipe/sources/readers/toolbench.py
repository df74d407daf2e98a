"""ToolBench: answers with their search tree, and ToolEval's converted answers.

Belongs here: both shapes. Undated, without users.

A tree holds every attempt of a depth-first search; a session is the path that the search chose: to
the last node that gave an answer, else to the last that gave up, else the last one visited. What
other branches tried is not in it, and the log's ``total_tokens``, which cover the whole search and
do not tell input from output, are not taken. ``observation_code`` 0 is fine, 3 the answer, 4 giving up,
5 a timeout, all others errors; so is an ``error`` inside the observation's JSON. ``win`` is success.
Agent (search method) and model are those of the file's name or of ``method``.
"""

from __future__ import annotations

import ast
import re

import orjson

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Record,
    RowParser,
    digest_of,
    json_readers,
    json_text,
    row_reader,
)
from evalpipe.sources.readers.chat_rows import tool_names
from evalpipe.sources.session import (
    ARGUMENTS,
    ERROR,
    IS_ERROR,
    NAME,
    OUTPUT,
    STEP_ID,
    Row,
    Session,
    agent_row,
    text_or_none,
    tool_row,
    user_row,
)

SOURCE = "toolbench"

_ANSWERED, _GAVE_UP, _TIMEOUT = 3, 4, 5
_FINE = frozenset({0, _ANSWERED, _GAVE_UP})
_METHODS = r"(?P<agent>(?:DFS|CoT|ReACT|chain|BFS)\w*(?:@\d+)?)"
_FILE = re.compile(rf"(?P<task>(?:.*__)?\w*?\d+)_(?P<model>.+?)_{_METHODS}\Z", re.I)
_METHOD = re.compile(rf"(?P<model>.+?)_{_METHODS}\Z", re.I)
_GROUP = re.compile(r"G[123]_\w+")
# A message of ToolEval is a Python literal; a longer one is not worth what it costs to read.
_MAX_LITERAL = 1_000_000
_CUT_CALL = re.compile(r"\{'name': '(?P<name>[^']+)'(?:, 'arguments': (?P<rest>.*))?", re.S)
_CUT_ERROR = re.compile(r'\{"error": "[^"]')


class TreeParser(RowParser):
    """Parser of one file, which holds one answer."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        found = _FILE.match(context.stem)
        self._task = found["task"] if found else None
        self._agent: str = found["agent"] if found else SOURCE
        self._model: str | None = found["model"] if found else None
        group = next((name for name in reversed(context.above) if _GROUP.fullmatch(name)), None)
        if self._task and group and not self._task.startswith("G"):
            self._task = f"{group}__{self._task}"

    def read(self, record: Record) -> Session | str:
        """Take one answer."""
        tree, answer = record.get("tree"), record.get("answer_generation")
        if tree is None or answer is None:
            return NOT_A_RECORD
        root = tree.get("tree") if type(tree) is dict else None
        if type(root) is not dict or type(answer) is not dict:
            return BAD_FIELD
        query = text_or_none(answer.get("query"))
        key = digest_of([self._agent, self._model, record])
        session = Session(SOURCE, f"{self._task or SOURCE}/{key}", self._agent)
        session.model, session.harness = self._model, SOURCE
        session.task_id = self._task or (digest_of(query) if query else None)
        session.tools = tool_names(answer.get("function"))
        win = record.get("win")
        session.is_success = win if type(win) is bool else None
        if query:
            session.rows.append(user_row("query", "human", query, None))
        path = _chosen(root)
        session.end_status = "completed" if path and path[-1].get("observation_code") in (3, 4) else "timeout"
        _add_path(session, path)
        session.n_messages = len(session.rows)
        return session


def _chosen(root: Record) -> list[Record]:
    """The path that the search ended with, without the root."""
    best: tuple[int, list[Record]] = (0, [])
    stack: list[tuple[Record, tuple[Record, ...]]] = [(root, ())]
    while stack:
        node, path = stack.pop()
        children = [child for child in _list(node.get("children")) if type(child) is dict]
        rank = {_ANSWERED: 3, _GAVE_UP: 2}.get(_code(node), 0 if children else 1)
        if rank and rank >= best[0]:
            best = rank, list(path)
        stack += [(child, (*path, child)) for child in reversed(children)]
    return best[1]


def _code(node: Record) -> int:
    code = node.get("observation_code")
    return code if type(code) is int else -1


def _add_path(session: Session, path: list[Record]) -> None:
    call: Row | None = None
    for n, node in enumerate(path):
        kind, text = node.get("node_type"), text_or_none(node.get("description"))
        if kind == "Thought" and text:
            session.rows.append(agent_row(str(n), text, None, session.model))
        elif kind == "Action":
            call = tool_row(str(n), text or "unknown", None, None)
            session.rows.append(call)
        elif kind == "Action Input" and call is not None:
            _finish_call(call, text, node)
            if call[NAME] == "Finish":
                _final(session, call)
            call = None
    if call is not None:
        call[ERROR] = "no_result"


def _finish_call(call: Row, arguments: str | None, node: Record) -> None:
    call[ARGUMENTS] = arguments
    call[OUTPUT] = text_or_none(node.get("observation"))
    code = node.get("observation_code")
    if type(code) is int:
        is_error = code not in _FINE or _has_error(call[OUTPUT])
        call[IS_ERROR] = is_error
        if is_error:
            call[ERROR] = "timeout" if code == _TIMEOUT else "tool_error"


def _has_error(observation: str | None) -> bool:
    if observation is None:
        return False
    value = _parsed(observation)
    return bool(value.get("error")) if type(value) is dict else _CUT_ERROR.match(observation) is not None


def _final(session: Session, call: Row, final: object = None) -> None:
    """The answer that ``Finish`` gives is what the agent says to the user."""
    session.rows.remove(call)
    given = final if type(final) is dict else _parsed(call[ARGUMENTS])
    text = text_or_none(given.get("final_answer")) if type(given) is dict else call[ARGUMENTS]
    reason = text_or_none(given.get("return_type")) if type(given) is dict else None
    if text or reason:
        session.rows.append(agent_row(call[STEP_ID], text or reason, None, session.model))


class ToolEvalParser(Parser):
    """Parser of one file, an object with one answer a query id."""

    def feed(self, record: Record) -> str:
        """Take all answers of the file."""
        answers = {key: value for key, value in record.items() if _is_answer(value)}
        if not answers:
            return NOT_A_RECORD
        for query_id, value in answers.items():
            self.keep(_answer(query_id, value))
        return KEPT


def _answer(query_id: str, value: Record) -> Session:
    answer = value["answer"]
    method = text_or_none(answer.get("method")) or SOURCE
    found = _METHOD.match(method)
    session = Session(SOURCE, f"{query_id}/{method}/{digest_of(value)}", found["agent"] if found else method)
    session.model, session.harness, session.task_id = (found["model"] if found else None), SOURCE, query_id
    session.tools = tool_names(value.get("available_tools"))
    said = text_or_none(answer.get("final_answer"))
    final: object = _parsed(said)
    if final is None and said:
        # Models write line breaks into JSON strings and forget quotes; it is an answer all the same.
        final = {"return_type": "give_answer" if '"give_answer"' in said else None, "final_answer": said}
    is_given = type(final) is dict and final.get("return_type") == "give_answer"
    session.end_status = "completed" if is_given else None
    query = text_or_none(value.get("query"))
    if query:
        session.rows.append(user_row("query", "human", query, None))
    nodes = _list(answer.get("answer_details"))
    position = 0
    while nodes and type(nodes[-1]) is dict:
        # A chain: where there are branches, the last is the one that went on.
        node = nodes[-1]
        _add_node(session, node, str(position), final)
        position += 1
        nodes = _list(node.get("next"))
    session.n_messages = len(session.rows)
    return session


def _add_node(session: Session, node: Record, step_id: str, final: object) -> None:
    role, message = node.get("role"), node.get("message")
    text = text_or_none(message)
    if role == "assistant" and text:
        session.rows.append(agent_row(step_id, text, None, session.model))
    elif role == "tool":
        call = message if type(message) is dict else _printed(text or "")
        row = tool_row(step_id, text_or_none(call.get("name")) or "unknown", json_text(call.get("arguments")), None)
        row[OUTPUT] = json_text(call.get("response"))
        session.rows.append(row)
        if row[NAME] == "Finish":
            _final(session, row, final)
        elif _has_error(row[OUTPUT]):
            row[IS_ERROR], row[ERROR] = True, "tool_error"


def _printed(text: str) -> Record:
    """A call that was printed as Python prints it, and often cut after a hundred characters."""
    if type(value := _literal(text)) is dict:
        return value
    match = _CUT_CALL.match(text)
    if match is None:
        return {}
    arguments, _, response = (match["rest"] or "").partition(", 'response': ")
    whole = _literal(arguments)
    return {
        "name": match["name"],
        "arguments": (arguments[1:] or None) if whole is None else whole,
        "response": response[1:] or None,
    }


def _literal(text: str) -> object:
    """The value of a Python literal; ``None`` where it is none."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _parsed(text: object) -> object:
    if type(text) is not str:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _list(value: object) -> list[object]:
    return value if type(value) is list else []


def _is_answer(value: object) -> bool:
    return type(value) is dict and type(value.get("answer")) is dict and "answer_details" in value["answer"]


def _is_tree(record: Record) -> bool:
    return "tree" in record and ("win" in record or "answer_generation" in record)


def _is_answers(record: Record) -> bool:
    first = next(iter(record.values()), None)
    return type(first) is dict and "available_tools" in first and type(first.get("answer")) is dict


_TREE = row_reader(SOURCE, _is_tree, TreeParser)
_EVAL = row_reader(SOURCE, _is_answers, ToolEvalParser)
READERS = (*json_readers(_TREE), *json_readers(_EVAL))
