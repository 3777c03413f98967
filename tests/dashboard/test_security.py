"""Whoever is not to ask gets nothing: foreign names, pages, tokens, methods and paths."""

import pytest

from deepbore.dashboard.security import Access, name_in
from deepbore.errors import SettingError
from watched import TOKEN, key_of

MINE = {"x-deepbore-token": TOKEN}
PATHS = ["/", "/events", "/assets/report.js", "/api/compare?runs=", "/api/run/none"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8080", "evil.example:80", "", "10.0.0.1:8080"]
)
@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_name_is_refused(client, host, path):
    answer = client().get(path, headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:9", "LOCALHOST", "[::1]:8080"])
def test_names_of_this_machine_are_known(client, host):
    assert client().get("/", headers={"host": host}).status_code == 200


def test_names_that_were_given_are_known(client):
    assert client(names=("lab.example",)).get("/", headers={"host": "lab.example:8080"}).status_code == 200


def test_the_name_in_a_host():
    assert [name_in(each) for each in ("a:1", "A", "[::1]:8080", "[::1]", " b ")] == ["a", "a", "::1", "::1", "b"]


@pytest.mark.parametrize(
    "headers", [{}, {"x-deepbore-token": "x" * 26}, {"x-deepbore-token": ""}, {"cookie": f"deepbore={TOKEN}"}]
)
def test_a_change_needs_the_token_in_a_header(client, headers):
    assert client().post("/api/session", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_another_page_changes_nothing_even_with_the_token(client, headers):
    assert client().post("/api/session", headers={**MINE, **headers}).status_code == 403


def test_a_page_of_the_dashboard_may(client):
    own = {"origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"}
    assert client().post("/api/session", headers={**MINE, **own}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client().request(method, "/", headers=MINE).status_code == 405


def test_open_to_other_machines_data_needs_the_token(client):
    opened = client(host="0.0.0.0", names=("lab.example",))
    host = {"host": "lab.example:8080"}
    key = key_of(opened, "ended")
    for path in (f"/api/run/{key}", "/api/compare?runs=", "/events"):
        assert opened.get(path, headers=host).status_code == 401
        assert opened.get(path, headers={**host, "x-deepbore-token": "x" * 26}).status_code == 401
        assert opened.get(path, headers={**host, "cookie": "deepbore=wrong"}).status_code == 401
    assert opened.get("/", headers=host).status_code == 200  # without data
    assert opened.get(f"/api/run/{key}", headers={**host, **MINE}).status_code == 200
    cookie = opened.post("/api/session", headers={**host, **MINE}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert opened.get(f"/api/run/{key}", headers={**host, "cookie": cookie.split(";")[0]}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e/server.py",
        "/assets/page",
        "/assets//etc/passwd",
        "/run/../../etc/passwd",
        "/api/run/..%2f..%2fetc%2fpasswd",
        "/api/run/../secret",
        "/assets/report.js%00",
        "/api/run/%2e%2e%2f",
    ],
)
def test_no_path_leads_outside(client, path):
    answer = client().get(path)
    assert answer.status_code in (404, 405) or "deepbore" in answer.text[:200]
    assert "root:" not in answer.text
    assert "def " not in answer.text


def test_pages_run_no_script_but_files_of_ours(client):
    answer = client().get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "connect-src 'self'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in answer.text  # none within the page
    assert " onload=" not in answer.text


def test_refusals_have_the_same_headers(client):
    answer = client().get("/", headers={"host": "evil.example"})
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("token", ["short", "", "a" * 15, "with a space in it, and a comma", "é" * 20, 'quote"' * 5])
def test_a_poor_token_is_refused(token):
    with pytest.raises(SettingError, match="at least 16"):
        Access(token=token)


def test_random_tokens_differ():
    assert Access().token != Access().token
    assert len(Access().token) >= 16


def test_open_and_read_only_pages_are_told_both(client):
    page = client(host="0.0.0.0", read_only=True).get("/").text
    assert 'data-mode="read-only"' in page
    assert 'data-open="yes"' in page
    assert 'data-open="no"' in client(read_only=True).get("/").text


def test_the_cookie_reads_alone_and_belongs_to_one_dashboard(client):
    """Browsers send cookies to every port of a machine: another program there must not get the token."""
    one, other = client(host="0.0.0.0"), client(host="0.0.0.0", token="another-token-of-a-test")
    cookie = one.post("/api/session", headers=MINE).headers["set-cookie"].split(";")[0]
    more = other.post("/api/session", headers={"x-deepbore-token": "another-token-of-a-test"}).headers["set-cookie"]
    assert TOKEN not in cookie
    assert cookie.split("=")[0] != more.split("=")[0]
    assert one.get("/api/compare?runs=", headers={"cookie": f"{cookie}; {more.split(';')[0]}"}).status_code == 200
    assert other.get("/api/compare?runs=", headers={"cookie": cookie}).status_code == 401
    assert one.post("/api/session", headers={"x-deepbore-token": cookie.split("=")[1]}).status_code == 401
