"""Objects of a bucket: which a source names, how they are copied, and what errors say."""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Event

import pytest

from evalpipe.contracts.errors import EvalpipeError, Exit
from evalpipe.sources import StoredObject, buckets, discover, short_name
from evalpipe.sources.named import Store, is_remote, parse_prefix
from evalpipe_tests.bucket import BUCKET, ENVIRON, ObjectStore, error

KEYS = (
    "top.jsonl",
    "day=1/a b.jsonl",
    "day=1/日志.jsonl",
    "day=1/deep/x.txt",
    "day=2/50%20.jsonl",
    "day=2/q?[x].jsonl",
)


@pytest.fixture
def filled(store: ObjectStore) -> ObjectStore:
    for key in KEYS:
        store.put(key, key.encode())
    return store


def found(*sources: str) -> list[str]:
    items = discover(sources)
    assert all(isinstance(item, StoredObject) for item in items)
    return [str(item).removeprefix(f"s3://{BUCKET}/") for item in items]


def item(key: str = "top.jsonl") -> StoredObject:
    (only,) = discover([f"s3://{BUCKET}/{key}"])
    assert isinstance(only, StoredObject)
    return only


# ---- which objects a source names


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("", sorted(KEYS)),
        ("day=1", [KEYS[1], KEYS[3], KEYS[2]]),
        ("day=1/", [KEYS[1], KEYS[3], KEYS[2]]),
        ("day=1/a b.jsonl", [KEYS[1]]),
        ("day=2/50%20.jsonl", [KEYS[4]]),
        ("**/*.jsonl", [KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[0]]),
        ("day=1/*.jsonl", [KEYS[1], KEYS[2]]),
        ("day=?/deep", [KEYS[3]]),
        ("day=2/q?[x].jsonl", [KEYS[5]]),
        ("day=1?region=eu-west-1", [KEYS[1], KEYS[3], KEYS[2]]),
    ],
)
def test_a_prefix_or_pattern_names_objects(filled: ObjectStore, name: str, keys: list[str]) -> None:
    assert found(f"s3://{BUCKET}/{name}") == keys
    assert filled.count("GET .*list-type=2.*max-keys=1000.*") == 1, "one listing"


def test_an_object_and_the_keys_below_it_are_all_named(store: ObjectStore) -> None:
    for key in ("a", "a/b", "ab"):
        store.put(key, key.encode())
    assert found(f"s3://{BUCKET}/a") == ["a", "a/b"]
    assert found(f"s3://{BUCKET}/a", f"s3://{BUCKET}/a/b", f"s3://{BUCKET}/a*") == ["a", "a/b", "ab"]


def test_a_key_that_stands_for_a_folder_is_none(store: ObjectStore) -> None:
    store.put("logs/", b"")
    store.put("logs/a.jsonl", b"{}")
    assert found(f"s3://{BUCKET}/logs") == ["logs/a.jsonl"]


def test_more_keys_than_a_page_holds_are_all_named(store: ObjectStore) -> None:
    for number in range(1_050):
        store.put(f"many/{number:04}.jsonl", b"{}")
    assert len(found(f"s3://{BUCKET}/many")) == 1_050


@pytest.mark.parametrize("name", ["nothing", "nothing/", "*.log", "day=1/*/*.jsonl"])
def test_a_name_that_nothing_has_is_an_error_with_its_place(filled: ObjectStore, name: str) -> None:
    with pytest.raises(EvalpipeError, match=f"SOURCE_NOT_FOUND .s3://{BUCKET}/") as caught:
        discover([f"s3://{BUCKET}/{name}"])
    assert caught.value.exit is Exit.USAGE


def test_an_empty_bucket_is_no_error_and_a_missing_one_is(store: ObjectStore) -> None:
    assert discover([f"s3://{BUCKET}"]) == []
    with pytest.raises(EvalpipeError, match=r"SOURCE_NOT_FOUND \[s3://no-such-logs/x\]: there is no bucket"):
        discover(["s3://no-such-logs/x"])


def test_files_and_objects_are_found_together(filled: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "local.jsonl").write_text("{}")
    names = [str(i) for i in discover([f"s3://{BUCKET}/top.jsonl", tmp_path, f"s3://{BUCKET}"])]
    assert names == sorted([str(tmp_path / "local.jsonl"), *(f"s3://{BUCKET}/{key}" for key in KEYS)])


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        ([f"s3://{BUCKET}"], "day=1/deep/x.txt"),
        ([f"s3://{BUCKET}/day=1/"], "deep/x.txt"),
        ([f"s3://{BUCKET}/day=1/**/*.txt?endpoint=https://x"], "deep/x.txt"),
        ([f"s3://{BUCKET}/day=2", f"s3://{BUCKET}/day=1"], "day=1/deep/x.txt"),
        ([f"s3://{BUCKET}/day=1/deep/x.txt"], "x.txt"),
    ],
)
def test_an_object_is_shown_below_its_source(sources: list[str], shown: str) -> None:
    assert short_name(StoredObject(Store(), BUCKET, "day=1/deep/x.txt", 1, 1), sources) == shown


# ---- how a source is written


def test_a_source_says_where_its_store_is() -> None:
    environ = {"AWS_ENDPOINT_URL": "https://all:1", "AWS_REGION": "eu-north-1"}
    assert parse_prefix("s3://logs/a", {}).store == Store()
    assert parse_prefix("s3://logs/a", environ).store == Store("https://all:1", "eu-north-1")
    environ |= {"AWS_ENDPOINT_URL_S3": "http://own:2/", "AWS_DEFAULT_REGION": "x"}
    assert parse_prefix("s3://logs/a", environ).store == Store("http://own:2", "eu-north-1")
    named = parse_prefix("S3://logs/a/?region=us-west-2&endpoint=http://localhost:9000&anonymous=true", environ)
    assert named.store == Store("http://localhost:9000", "us-west-2", is_anonymous=True)
    assert (named.bucket, named.key) == ("logs", "a/")
    assert parse_prefix("s3://logs/a?b*", {}).key == "a?b*"


@pytest.mark.parametrize(
    "source",
    [
        "s3://",
        "s3:///key",
        "s3://*/key",
        "gs://logs/a",
        "https://logs/a",
        "s3://KEYID:hunter2@logs/a",
        "s3://logs/a?endpoint=https://KEYID:hunter2@host",
        "s3://logs/a?region=x&secret_key=hunter2",
        "s3://logs/a?endpoint=ftp://host",
        "s3://logs/a?anonymous=hunter2",
    ],
)
def test_what_is_no_source_is_refused_and_credentials_are_never_repeated(source: str) -> None:
    assert is_remote(source)
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT") as caught:
        parse_prefix(source, {})
    assert "hunter2" not in str(caught.value)
    assert caught.value.exit is Exit.USAGE


def test_credentials_in_an_endpoint_of_the_environment_are_refused_too() -> None:
    with pytest.raises(EvalpipeError, match="AWS_ENDPOINT_URL holds credentials") as caught:
        parse_prefix("s3://logs/a", {"AWS_ENDPOINT_URL": "https://KEYID:hunter2@host"})
    assert "hunter2" not in str(caught.value)


def test_a_file_may_be_called_as_a_source_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gs:" / "logs").mkdir(parents=True)
    (tmp_path / "gs:" / "logs" / "a").write_text("{}")
    assert [str(i) for i in discover(["gs://logs"])] == ["gs:/logs/a"]


@pytest.mark.parametrize("key", ["a/../top.jsonl", "./top.jsonl", "a//b"])
def test_a_key_that_clients_would_shorten_is_not_asked_for(filled: ObjectStore, key: str) -> None:
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        discover([f"s3://{BUCKET}/{key}"])
    filled.put(key, b"other bytes")
    below = [i for i in discover([f"s3://{BUCKET}"]) if isinstance(i, StoredObject) and i.key == key]
    assert len(below) == 1, "it is found, so that it is accounted for"
    filled.requests.clear()
    assert buckets.copy(below[0], Path("/nowhere")).digest == ""
    assert filled.requests == []


# ---- copies


def test_a_copy_has_the_bytes_and_their_digest_in_bounded_blocks(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(range(256)) * 1_000
    store.put("big.jsonl", data)
    monkeypatch.setattr(buckets, "BLOCK", 100_000)
    copied = buckets.copy(item("big.jsonl"), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data
    assert copied.is_copied
    assert (copied.n_bytes, copied.digest) == (len(data), hashlib.blake2b(data, digest_size=16).hexdigest())
    assert store.count("GET .*/big.jsonl") == 3


def test_an_object_whose_state_is_known_is_not_read(filled: ObjectStore, tmp_path: Path) -> None:
    etag = buckets.copy(item(), tmp_path / "copy").etag
    filled.requests.clear()
    again = buckets.copy(item(), tmp_path / "again", etag)
    assert (again.is_copied, again.etag, again.digest) == (False, etag, "")
    assert filled.count("GET .*/top.jsonl") == 0
    filled.put("top.jsonl", b"another")
    assert buckets.copy(item(), tmp_path / "again", etag).is_copied


@pytest.mark.parametrize(("before", "after"), [(b"x" * 250, b"y" * 250), (b"x" * 250, b"y" * 120), (b"x" * 250, b"")])
def test_an_object_that_is_replaced_while_it_is_read_is_read_anew(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes
) -> None:
    monkeypatch.setattr(buckets, "BLOCK", 100)
    store.put("grows", before)
    reads: list[str] = []

    def replace(method: str, path: str) -> None:
        if method == "GET" and path.endswith("/grows"):
            reads.append(path)
            if len(reads) == 2:
                store.put("grows", after)

    listed = item("grows")
    store.answer = replace
    copied = buckets.copy(listed, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == after
    assert copied.digest == hashlib.blake2b(after, digest_size=16).hexdigest()


def test_an_object_that_never_stays_the_same_is_given_up(store: ObjectStore, tmp_path: Path) -> None:
    store.put("log", b"0")
    reads: list[str] = []

    def replace(method: str, path: str) -> None:
        if method == "GET" and path.endswith("/log"):
            reads.append(path)
            store.put("log", str(len(reads)).encode())

    listed = item("log")
    store.answer = replace
    copied = buckets.copy(listed, tmp_path / "copy")
    assert (copied.digest, copied.is_copied) == ("", False)
    assert len(reads) == buckets.ATTEMPTS


@pytest.mark.parametrize("is_late", [False, True])
def test_an_object_that_vanishes_has_no_digest(filled: ObjectStore, tmp_path: Path, is_late: bool) -> None:
    listed = item()

    def vanish(method: str, path: str) -> None:
        if method == ("GET" if is_late else "HEAD"):
            filled.delete("top.jsonl")

    filled.answer = vanish
    assert buckets.copy(listed, tmp_path / "copy").digest == ""


def test_a_copy_that_nobody_waits_for_is_given_up(filled: ObjectStore, tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    listed = item()
    filled.requests.clear()
    assert buckets.copy(listed, tmp_path / "copy", stop=stop).digest == ""
    assert filled.count("GET .*") == 0


def test_an_object_that_gives_no_bytes_has_no_digest(filled: ObjectStore, tmp_path: Path) -> None:
    """As one that a lifecycle rule moved to an archive: it is there, and cannot be read."""
    listed = item()
    refused = error("403 Forbidden", "InvalidObjectState")
    filled.answer = lambda method, path: refused if method == "GET" else None
    assert buckets.copy(listed, tmp_path / "copy").digest == ""


# ---- errors


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error("403 Forbidden", "AccessDenied"), "SOURCE_DENIED"),
        (error("403 Forbidden", "InvalidAccessKeyId"), "SOURCE_DENIED"),
        (error("403 Forbidden", "SignatureDoesNotMatch"), "SOURCE_DENIED"),
        (error("400 Bad Request", "ExpiredToken"), "SOURCE_DENIED"),
        (error("418 Teapot", "Odd"), "SOURCE_UNREACHABLE"),
    ],
)
def test_a_store_that_refuses_is_told_with_place_and_fix(
    filled: ObjectStore, answer: tuple[str, bytes], code: str
) -> None:
    filled.answer = lambda method, path: answer
    with pytest.raises(EvalpipeError, match=rf"{code} \[s3://{BUCKET}/day=1/\].*Fix: ") as caught:
        discover([f"s3://{BUCKET}/day=1/"])
    assert caught.value.exit is Exit.USAGE
    assert ENVIRON["AWS_ACCESS_KEY_ID"] not in str(caught.value)


def test_a_store_that_is_not_there_is_told(filled: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_ATTEMPTS_OF_A_REQUEST", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(EvalpipeError, match=r"SOURCE_UNREACHABLE.*NETWORK_CONNECTION"):
        discover([f"s3://{BUCKET}/day=1"])


def test_an_object_is_read_by_those_who_may_not_list(filled: ObjectStore) -> None:
    filled.answer = lambda method, path: error("403 Forbidden", "AccessDenied") if "list-type" in path else None
    assert found(f"s3://{BUCKET}/top.jsonl") == ["top.jsonl"]
    with pytest.raises(EvalpipeError, match="SOURCE_DENIED"):
        discover([f"s3://{BUCKET}/day=1"])


def test_one_object_that_is_closed_stops_no_other_and_a_lost_store_stops_all(
    filled: ObjectStore, tmp_path: Path
) -> None:
    listed = item()
    filled.answer = lambda method, path: error("403 Forbidden", "AccessDenied")
    assert buckets.copy(listed, tmp_path / "copy").digest == ""
    filled.answer = lambda method, path: error("400 Bad Request", "ExpiredToken")
    with pytest.raises(EvalpipeError, match=r"SOURCE_UNREACHABLE|SOURCE_DENIED"):
        buckets.copy(listed, tmp_path / "copy")


def test_the_region_of_a_bucket_of_aws_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def region(bucket: str) -> str:
        asked.append(bucket)
        raise OSError(f"Bucket '{bucket}' not found")

    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(buckets, "resolve_s3_region", region)
    with pytest.raises(EvalpipeError, match=r"SOURCE_NOT_FOUND.*no bucket"):
        discover(["s3://logs-of-nobody/a"])
    assert asked == ["logs-of-nobody"]
