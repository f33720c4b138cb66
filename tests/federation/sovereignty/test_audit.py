"""The record of what a site has sent: no line can be changed or removed without being found."""

import json
import multiprocessing
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcso.federation.sovereignty.audit import (
    FILE,
    HEAD,
    _hash,
    faults,
    messages_in,
    read_lines,
    record,
    require_budget,
)
from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.sovereignty.update import Update, epsilon

FREE = Update()
NOISY = Update(clip=1, noise=4, max_epsilon=3)
SENT = {"norm": 2.0, "clipped": 1.0, "clip": 1.0, "noise": 4.0}


def written(folder, number=6, update=FREE):
    for n in range(number):
        record(folder, {"kind": "train", "run": "ξ", "round": n, "bytes": 10, "digest": "ab"}, update)
    return read_lines(folder)


def rewrite(folder, lines):
    (folder / FILE).write_bytes(b"".join(line + b"\n" for line in lines))


def test_lines_say_what_was_sent_and_hold_the_hash_of_the_line_before(tmp_path):
    lines = written(tmp_path)
    said = [json.loads(line) for line in lines]
    assert [one["line"] for one in said] == [1, 2, 3, 4, 5, 6]
    assert [one["previous"] for one in said] == ["0" * 64, *map(_hash, lines[:-1])]
    assert all(datetime.fromisoformat(one["time"]).tzinfo for one in said)
    assert faults(tmp_path) == []
    assert faults(tmp_path, known=_hash(lines[2])) == []


@pytest.mark.parametrize("place", range(6))
def test_a_removed_line_is_found_and_the_site_sends_nothing_more(tmp_path, place):
    lines = written(tmp_path)
    rewrite(tmp_path, lines[:place] + lines[place + 1 :])
    assert faults(tmp_path)
    if place == 5:
        with pytest.raises(Refused, match="was changed; see: fedcso flower audit"):
            record(tmp_path, {}, FREE)


@pytest.mark.parametrize("place", range(6))
def test_a_changed_line_is_found(tmp_path, place):
    lines = written(tmp_path)
    lines[place] = lines[place].replace(b'"bytes": 10', b'"bytes": 11')
    rewrite(tmp_path, lines)
    (fault,) = faults(tmp_path)
    assert f"line {place + 1} was changed" in fault if place < 5 else "last line should be line 6" in fault


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_whatever_is_done_to_the_file_is_found(tmp_path, data):
    for name in (FILE, HEAD):
        (tmp_path / name).unlink(missing_ok=True)
    whole = b"".join(line + b"\n" for line in written(tmp_path, 4))
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, len(whole) - 1))
    changed = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
    (tmp_path / FILE).write_bytes(changed)
    same = [line for line in changed.split(b"\n") if line] == [line for line in whole.split(b"\n") if line]
    assert bool(faults(tmp_path)) == (not same) or read_lines(tmp_path)[:4] == whole.split(b"\n")[:4]


def test_lines_that_were_swapped_copied_or_made_up_are_found(tmp_path):
    lines = written(tmp_path)
    for other in ([*lines[:2], lines[3], lines[2], *lines[4:]], [*lines[:3], lines[2], *lines[3:]], [*lines, *lines]):
        rewrite(tmp_path, other)
        assert faults(tmp_path)


def test_a_forged_record_does_not_have_the_head_that_was_written_down(tmp_path):
    known = _hash(written(tmp_path)[-1])
    for name in (FILE, HEAD):
        (tmp_path / name).unlink()
    written(tmp_path, 7)
    assert faults(tmp_path) == []
    (fault,) = faults(tmp_path, known)
    assert "which was the last one once" in fault


@pytest.mark.parametrize("head", ["", "{}", '{"lines": "a", "hash": 3}', None])
def test_a_head_that_cant_be_read_or_was_removed_is_found(tmp_path, head):
    written(tmp_path)
    (tmp_path / HEAD).unlink() if head is None else (tmp_path / HEAD).write_text(head)
    assert faults(tmp_path)
    with pytest.raises(Refused):
        record(tmp_path, {}, FREE)


def test_a_record_that_was_removed_as_a_whole_is_found(tmp_path):
    written(tmp_path)
    (tmp_path / FILE).unlink()
    assert faults(tmp_path)
    with pytest.raises(Refused):
        record(tmp_path, {}, FREE)


def test_after_a_crash_between_line_and_head_or_inside_a_line_the_site_goes_on(tmp_path):
    written(tmp_path, 3)
    head = (tmp_path / HEAD).read_bytes()
    written(tmp_path, 1)
    (tmp_path / HEAD).write_bytes(head)
    assert faults(tmp_path) == []
    written(tmp_path, 1)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"line": 6, "ti')
    assert faults(tmp_path) == []
    lines = written(tmp_path, 2)
    assert faults(tmp_path) == []
    assert (len(lines), len(messages_in(tmp_path))) == (8, 7)


def test_the_account_is_in_the_record_and_ends_at_the_policys_limit(tmp_path):
    updates = 0
    with pytest.raises(Refused, match="above max_epsilon"):  # noqa: PT012 - some updates are allowed
        while True:
            require_budget(tmp_path, NOISY)
            record(tmp_path, {"kind": "train", "updates": [SENT]}, NOISY)
            updates += 1
    assert epsilon(updates * (2 / 4) ** 2, 1e-5) <= 3 < epsilon((updates + 1) * (2 / 4) ** 2, 1e-5)
    assert updates >= 1
    record(tmp_path, {"kind": "evaluate"}, NOISY)  # has no update
    with pytest.raises(Refused, match="above max_epsilon"):
        record(tmp_path, {"kind": "train", "updates": [SENT]}, NOISY)
    assert faults(tmp_path) == []


def _write(folder):
    written(folder, 10)


def test_processes_that_write_at_the_same_time_leave_one_chain(tmp_path):
    several = [multiprocessing.get_context("fork").Process(target=_write, args=(tmp_path,)) for _ in range(3)]
    for process in several:
        process.start()
    for process in several:
        process.join()
    assert len(written(tmp_path, 1)) == 31
    assert faults(tmp_path) == []
