"""Texts that slow maskers down: each repeats what makes one rule look far, or look often.

A masker must scan them in linear time or withhold them whole. The unit of an entry is repeated up to
the size that is asked for; ``{n}`` in it is a running number.
"""

from __future__ import annotations

UNITS: dict[str, str] = {
    "pem begin lines": "-----BEGIN RSA PRIVATE KEY-----\n",
    "pem bodies without end": "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7" * 30 + "\n",
    "password=password=": "password=",
    "a@b a@b": "a@b ",
    "userinfo": "://a:b@",
    "one local part": "a",
    "dots": ".",
    "digits": "1",
    "digit groups": "1234 5678 ",
    "plus signs": "+1 (",
    "jwt heads": "eyJhbGciOiJIUzI1NiJ9",
    "jwt dots": "eyJhbGciOiJIUzI1NiJ9.",
    "base64 of secrets": "cGFzc3dvcmQ9",
    "table headings": "user,password,role\n",
    "long table": "user,password,role{n}\n",
    "alternating tables": "a,password,b\nc,d\n",
    "cookies": "Cookie: a={n}bcdefghijklmnop; ",
    "kubernetes": "kind: Secret\ndata:\n  a: YWJjZGVmZ2g{n}\n",
    "commands": "curl -u a:b redis-cli -a docker login ",
    "authorization": "Authorization: Bearer ",
    "escapes": "\\u0040",
    "double escapes": "\\\\u0040\\x41%40&#64;",
    "zero width": "a\u200b",
    "full width": "\uff41\uff20",
    "open quotes": 'password: "',
    "names": "My name is ",
    "chinese cues": "\u5bc6\u7801\uff1a\u6211\u53eb",
    "pseudonyms": "<PERSON:abcd:abcdefghijklmnopabcd>",
    "home folders": "/home/a{n}/",
    "addresses": "address: 1 a b c d e f g h ",
    "seed words": "mnemonic: word word word word word word ",
    "one long line of keys": "api_key='{n}' secret='{n}' token='{n}' ",
    "ipv6": "2001:db8:",
    "recovery codes": "recovery codes: a1b2-c3d4 ",
    "calls": '.login("a", "b',
    "env names": "API_KEY ",
    "prompts": "ab@host:~/x$ ",
}


def text(name: str, n_bytes: int) -> bytes:
    """One of the texts, about as long as asked for."""
    unit = UNITS[name]
    size = len(unit.replace("{n}", "000000").encode())
    times = max(1, n_bytes // size)
    if "{n}" not in unit:
        return (unit * times).encode()
    return "".join(unit.replace("{n}", f"{at:06d}") for at in range(times)).encode()
