"""Public chat logs as their data sets publish them: WildChat and LMSYS-Chat, JSON lines or Parquet.

Belongs here: the fields around the messages. WildChat's ``hashed_ip`` is the user; the row's time
is that of the last turn, so the first turn's goes before it. LMSYS rows are undated. Language,
moderation, redaction and toxicity flags are not kept: language is found on masked text, and the
flags are judgements of the publisher, not of the user.
"""

from __future__ import annotations

from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    NOT_A_RECORD,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.readers.openai_messages import add_messages, is_message_list
from evalpipe.sources.session import Session, text_or_none
from evalpipe.sources.times import normal_time

WILDCHAT, LMSYS = "wildchat", "lmsys_chat"


class WildChatParser(RowParser):
    """Parser of one file of rows."""

    source = WILDCHAT

    def read(self, record: Record) -> Session | str:
        """Take one conversation."""
        messages = record.get("conversation")
        if messages is None:
            return NOT_A_RECORD
        if not is_message_list(messages):
            return BAD_FIELD
        own = text_or_none(record.get("conversation_hash")) or text_or_none(record.get("conversation_id"))
        session = Session(self.source, own or digest_of(messages), self.source)
        session.model = text_or_none(record.get("model"))
        session.user_id = _user(record, messages)
        add_messages(session, messages)
        at = normal_time(record.get("timestamp"))
        if at is not None and at > session.greatest_at:
            session.see(at)
        return session


class LmsysParser(WildChatParser):
    """Parser of one file of LMSYS rows."""

    source = LMSYS


def _user(record: Record, messages: list[Record]) -> str | None:
    found = text_or_none(record.get("hashed_ip"))
    return found or next((ip for m in messages if (ip := text_or_none(m.get("hashed_ip")))), None)


def _is_wildchat(record: Record) -> bool:
    is_row = type(record.get("conversation")) is list
    # The first edition has the other data set's name for the id.
    return is_row and ("conversation_hash" in record or "detoxify_moderation" in record)


def _is_lmsys(record: Record) -> bool:
    return type(record.get("conversation")) is list and "conversation_id" in record


_WILDCHAT = replace(row_reader(WILDCHAT, _is_wildchat, WildChatParser), version="2")
READERS = (
    *json_readers(_WILDCHAT),
    *json_readers(replace(_WILDCHAT, name=LMSYS, recognise=_is_lmsys, parser=LmsysParser)),
)
