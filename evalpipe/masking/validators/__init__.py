"""Validators by name: the second look at what an anchor found.

Belongs here: the registry. A rule names its validator; a name that is missing here is an error of the
rule set. ``SPAN`` validators judge a matched value, ``HIT`` validators find the value themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from evalpipe.masking.validators import (
    keyvalue,
    naming,
    network,
    numbers,
    people,
    phrases,
    places,
    secrets,
    statements,
)
from evalpipe.masking.validators.base import Facts, Found, text

SpanValidator = Callable[[bytes, int, int, Facts], Found | None]
HitValidator = Callable[[bytes, int, Facts], list[Found] | None]


def accept(v: bytes, start: int, end: int, facts: Facts) -> Found | None:
    """Take the value as matched."""
    return start, end, text(v[start:end]).casefold()


SPAN: dict[str, SpanValidator] = {
    "none": accept,
    "token": secrets.token,
    "header_value": places.header_value,
    "random_token": places.random_token,
    "flag_value": keyvalue.flag_value,
    "dashed_flag": keyvalue.dashed_flag,
    "random_value": places.random_value,
    "prose_secret": keyvalue.prose_secret,
    "quoted_secret": places.quoted_secret,
    "basic_pair": places.basic_pair,
    "vendor": secrets.vendor,
    "home_user": people.home_user,
    "user": people.user,
    "person": people.person,
    "person_loose": people.person_loose,
    "person_cue": people.person_cue,
    "person_part": naming.person_part,
    "person_uncased": naming.person_uncased,
    "native_secret": phrases.native_secret,
    "drawn_secret": phrases.drawn_secret,
    "phrase_secret": phrases.phrase_secret,
    "login_pair": phrases.login_pair,
    "login_name": phrases.login_name,
    "list_group": phrases.list_group,
    "machine": phrases.machine,
    "user_key": naming.user_key,
    "log_user": naming.log_user,
    "user_odd": naming.user_odd,
    "address": people.address,
    "card": numbers.card,
    "card_cue": numbers.card_cue,
    "iban": numbers.iban,
    "cn_id": numbers.cn_id,
    "cpf": numbers.cpf,
    "ssn": numbers.ssn,
    "id_value": numbers.id_value,
    "id_code": numbers.id_code,
    "pin": numbers.pin,
    "btc": numbers.btc,
    "plate": numbers.plate,
    "phone_international": numbers.phone_international,
    "phone_national": numbers.phone_national,
    "phone_trunk": numbers.phone_trunk,
    "phone_cue": numbers.phone_cue,
    "cn_mobile": numbers.cn_mobile,
    "ipv4": network.ipv4,
    "mac": network.mac,
}

HIT: dict[str, HitValidator] = {
    "aws_pair": secrets.aws_pair,
    "beside_mask": secrets.beside_mask,
    "pem": secrets.pem,
    "url_userinfo": secrets.url_userinfo,
    "cookie": secrets.cookie,
    "cli_userpass": secrets.cli_userpass,
    "echo_pipe": secrets.echo_pipe,
    "k8s_data": secrets.k8s_data,
    "base64_run": secrets.base64_run,
    "call_credentials": places.call_credentials,
    "cli_secret": places.cli_secret,
    "chpasswd": places.chpasswd,
    "column_secret": places.column_secret,
    "word_before": places.word_before,
    "code_list": places.code_list,
    "kv_named": places.kv_named,
    "sql_insert": statements.sql_insert,
    "dsn_password": statements.dsn_password,
    "kv_password": keyvalue.kv_password,
    "kv_secret": keyvalue.kv_secret,
    "kv_key": keyvalue.kv_key,
    "email": people.email,
    "otp_before": phrases.otp_before,
    "name_before": phrases.name_before,
    "person_before": naming.person_before,
    "passwd_user": naming.passwd_user,
    "prompt": people.prompt,
    "prompt_host": people.prompt_host,
    "url_user": people.url_user,
    "ipv6": network.ipv6,
}
