"""Pages asked as a browser asks them: a form found on a page, filled in and sent, and what the pages say."""

from __future__ import annotations

import html
import re
from typing import Any

from fastapi.testclient import TestClient

from rocerf.service.pages.texts import page_language

HTML = {"accept": "text/html"}


def said(key: str, code: str = "en", **values: object) -> str:
    return html.escape(page_language(code).say(f"pages.{key}", **values), quote=False)


def send(client: TestClient, page: str, act: str, *, start: str = "", **values: Any) -> str:
    """Fill in the form of a page (or of another one) and send it as a browser does; the page to which it leads."""
    text = client.get(start or page, headers=HTML).text
    target = f"{page}/{act}" if act else page
    form = re.search(rf'<form[^>]*action="{target}".*?</form>', text, flags=re.DOTALL)
    assert form is not None, f"no form for {act} on {page}"
    token = re.search(r'name="csrf_token" value="(\w+)"', form.group())
    assert token is not None
    for name in values:
        assert f'name="{name}"' in form.group(), name
    sent = client.post(target, data={"csrf_token": token.group(1), **values}, headers=HTML)
    if sent.status_code == 200:
        return sent.text
    assert sent.status_code == 303, sent.text
    return client.get(sent.headers["location"], headers=HTML).text


def offered(text: str) -> set[str]:
    return set(re.findall(r'action="/requests/\d+/(\w+)"', text))
