from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from viewed_study import HOSTILE_SEEN, batch, write_viewed
from viewer_server import Running, start, wait_for_index, wait_for_rows


def json_of(running: Running, path: str, **headers: str) -> Any:
    reply = running.ask(path, **headers)
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def test_the_address_with_its_token_opens_the_page_and_leaves_a_cookie(running: Running) -> None:
    reply = running.ask(f"/?token={running.token}", cookie="")
    assert reply.status == 200
    assert reply.body.startswith(b"<!doctype html>")
    assert reply.headers["set-cookie"] == (f"{running.cookie}; Path=/; HttpOnly; SameSite=Strict")


@pytest.mark.parametrize("path", ["/", "/api/studies", "/static/main.js", "/nowhere"])
def test_without_the_token_nothing_is_told(running: Running, path: str) -> None:
    for cookie in ("", f"ahalab_view_{running.port}=wrong", f"other={running.token}", "=;;\x01"):
        reply = running.ask(path, cookie=cookie)
        assert reply.status == 403
        assert reply.body.startswith(b"Open the address that `ahalab view` printed")
        assert "set-cookie" not in reply.headers


def test_a_wrong_token_in_the_address_is_refused(running: Running) -> None:
    for token in ("wrong", running.token[:-1], running.token + "x", ""):
        reply = running.ask(f"/?token={token}", cookie="")
        assert reply.status == 403
    twice = running.ask(f"/?token=wrong&token={running.token}", cookie="")
    assert twice.status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1:80@evil",
     "10.0.0.1", "[::2]", "127.0.0.1:80, evil.example", ""],
)  # fmt: skip
def test_a_foreign_host_is_refused(running: Running, host: str) -> None:
    reply = running.ask("/api/studies", host=host)
    assert reply.status == 403
    assert b"127.0.0.1 and localhost only" in reply.body


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_this_machines_own_names_and_the_ports_of_tunnels_are_not(
    running: Running, host: str
) -> None:
    assert running.ask("/api/studies", host=host).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
@pytest.mark.parametrize("path", ["/", "/api/studies"])
def test_only_reading_is_there(running: Running, method: str, path: str) -> None:
    reply = running.ask(path, method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, HEAD"


def test_head_is_get_without_a_body(running: Running) -> None:
    reply = running.ask("/static/main.js", method="HEAD")
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py",
     "/static/%2e%2e%2f%2e%2e%2fcli/app.py", "/static//etc/passwd", "/static/%2fetc%2fpasswd",
     "/static/vendor/../../guard.py", "/static/..%5cserver.py", "/static/%252e%252e/server.py",
     "/static/vendor/VENDORED.md", "/static/", "/static/vendor", "/../../etc/passwd",
     "/study.yaml", "/api/study/..%2f..%2fetc", "/api/study/%2e%2e/pairs", "/api/study/x/curves",
     "/study/x/nowhere", "/docs", "/openapi.json"],
)  # fmt: skip
def test_no_path_leads_out_of_what_is_served(running: Running, path: str) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as plain:  # no client tidies it up
        plain.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {running.cookie}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        with closing(http.client.HTTPResponse(plain)) as reply:
            reply.begin()
            body = reply.read()
    assert reply.status == 404
    assert b"root:" not in body
    assert b"import" not in body


@pytest.mark.parametrize(
    "wanted",
    ["run=../../../etc", "run=base", "run=arms/correctness/seed-99", "run=%2fetc%2fpasswd",
     "run=arms/correctness/seed-1&step=-1", "run=arms/correctness/seed-1&step=1e3",
     "step=999999999999999999999", "step=999"],
)  # fmt: skip
def test_what_names_no_run_or_step_is_refused_on_one_line(
    running: Running, study: str, wanted: str
) -> None:
    reply = running.ask(f"/api/study/{study}/step?{wanted}")
    assert reply.status == 400
    told = json.loads(reply.body)["error"]
    assert "expected" in told
    assert "\n" not in told


@pytest.mark.parametrize("path", ["/", "/nowhere", "/api/studies", "/static/style.css"])
def test_every_reply_has_the_headers_also_a_refusal(running: Running, path: str) -> None:
    for cookie in (None, ""):
        headers = running.ask(path, cookie=cookie).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        for part in ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
                     "require-trusted-types-for 'script'"):  # fmt: skip
            assert part in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_another_sites_page_is_told_nothing_even_with_the_cookie(running: Running) -> None:
    for site in ("cross-site", "same-site"):
        reply = running.ask("/api/studies", sec_fetch_site=site, sec_fetch_mode="no-cors")
        assert reply.status == 403
    opened = running.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert opened.status == 200


def test_the_page_has_no_script_or_style_of_its_own(running: Running) -> None:
    page = running.ask("/").body.decode()
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.replace(" one", "").lower()
    assert page.count("<script") == 1
    assert 'src="/static/main.js"' in page


def test_polls_are_answered_with_nothing_new(running: Running, study: str) -> None:
    first = running.ask(f"/api/study/{study}/curves")
    again = running.ask(f"/api/study/{study}/curves", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_a_fault_in_a_filter_is_a_line_with_its_place(running: Running, study: str) -> None:
    for path in ("rollouts", "pairs"):
        reply = running.ask(f"/api/study/{study}/{path}?q=tokens%3E5%20tokens%3Emany")
        assert reply.status == 400
        assert json.loads(reply.body) == {
            "error": "filter:10: expected a number after tokens>, found 'many'.", "place": 10
        }  # fmt: skip


@pytest.mark.parametrize("q", ["' OR 1=1 --", '"; DROP TABLE rollout; --"', "gold=\"' OR '1'='1\""])
def test_a_filter_is_never_sql(running: Running, study: str, q: str) -> None:
    reply = running.ask(f"/api/study/{study}/rollouts?q={quote(q)}")
    found = json.loads(reply.body)
    assert found.get("total", 0) == 0 or "error" in found
    assert json_of(running, f"/api/study/{study}/rollouts")["total"] == 104


def test_pairs_are_sorted_into_kinds_as_by_hand(running: Running, study: str) -> None:
    # base WCCFFT against correctness 2 CWWCCT, strict: gained 0, lost 1 2, F to C twice gained, T.
    found = json_of(running, f"/api/study/{study}/pairs?cell=arms/correctness/seed-2")
    assert found["counts"] == {
        "all": 6, "gained": 3, "lost": 2, "changed": 5, "both wrong": 1, "both right": 0,
        "format only": 2, "extraction differs": 3, "truncated": 1, "same": 1, "not the same": 5,
    }  # fmt: skip
    lenient = json_of(
        running, f"/api/study/{study}/pairs?cell=arms/correctness/seed-2&metric=lenient&show=gained"
    )
    assert [pair["change"] for pair in lenient["pairs"]] == ["gained"]
    assert lenient["counts"]["both right"] == 2


def test_a_pair_has_the_mark_and_the_rule_of_what_was_taken(running: Running, study: str) -> None:
    pairs = json_of(running, f"/api/study/{study}/pairs?cell=arms/correctness/seed-2&show=gained")
    pair = json_of(
        running,
        f"/api/study/{study}/pair?cell=arms/correctness/seed-2&id={pairs['pairs'][1]['id']}",
    )
    base, adapter = pair["before"], pair["after"]
    assert (base["rule"], adapter["rule"]) == ("statement", "hashes")
    for side in (base, adapter):
        shown = side["taken"]["completion"]
        start, end = shown["mark"]
        assert shown["text"][start:end] == side["taken"]["extracted"] == "7"
    assert pair["gold"]["text"] == "7"


def test_cards_come_in_order_of_advantage_with_their_arithmetic(
    running: Running, study: str
) -> None:
    group = json_of(running, f"/api/study/{study}/group?run=arms/correctness/seed-2&step=1&group=0")
    assert [card["advantage"] for card in group["cards"]] == [1.5, -0.5, -0.5, -0.5]
    assert [card["sample"] for card in group["cards"]] == [0, 1, 2, 3]
    (component,) = group["cards"][0]["components"]
    assert component == {
        "name": "correct_strict", "value": 1.0, "status": "ok", "weight": 1.0, "contribution": 1.0,
    }  # fmt: skip
    step = json_of(running, f"/api/study/{study}/step?run=arms/correctness/seed-2&step=1")
    assert (step["previous"], step["next"], step["first"], step["last"]) == (0, 2, 0, 2)
    assert [(g["right"], g["rollouts"], g["truncated"]) for g in step["groups"]] == [
        (1, 4, 1),
        (0, 4, 0),
    ]


def test_hostile_text_arrives_visible_and_as_text(running: Running, study: str) -> None:
    found = json_of(running, f"/api/study/{study}/rollouts?q=owned")["found"]
    assert len(found) == 1
    card = json_of(running, f"/api/study/{study}/rollout?id={found[0]['id']}")["cards"][0]
    shown = card["taken"]["completion"]
    assert shown["text"] == HOSTILE_SEEN
    assert [shown["text"][a:b] for a, b in shown["escapes"]] == [
        "\\u202e", "\\u202c", "\\u200b", "^[", "^[", "^@\\u2028\\ue000",
    ]  # fmt: skip
    start, end = shown["mark"]
    assert shown["text"][start:end] == "8"


def test_answers_under_another_protocol_are_refused(tmp_path: Path) -> None:
    viewed = write_viewed(tmp_path / "results" / "small")
    protocol = viewed.paths.answers("random", 1).protocol
    protocol.write_bytes(protocol.read_bytes().replace(b'"batch_size": 64', b'"batch_size": 63'))
    server = start(viewed, tmp_path / "cache")
    try:
        study = wait_for_index(server)
        reply = server.ask(f"/api/study/{study}/pairs?cell=arms/random/seed-1")
        assert reply.status == 409
        assert "another batch_size" in json.loads(reply.body)["error"]
        with viewed.writer("random", 2) as writer:  # and what is committed now comes in
            writer.append(batch(viewed, "random", 3))
        wait_for_rows(server, study, 104)
    finally:
        server.stop()
