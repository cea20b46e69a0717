"""The service over the ledger (extra ``service``): FastAPI, tokens with roles, problem documents, and the pages.

``rocerf serve`` runs it. From Python::

    from rocerf.service.app import create_app

    app = create_app(ledger)                     # an ASGI application; uvicorn runs it

**A route of your own** (the pages have theirs this way):

1. declare who may, once, before the router is made: ``declare({("GET", "/letters"): PEOPLE})`` from
   :mod:`rocerf.service.permissions`. A route without a line there does not start; ``PUBLIC`` needs no sign-in.
2. make the router with ``router = guarded_router()`` from :mod:`rocerf.service.guard`, and write full paths in it. The
   role is checked before anything of the request is read; wrong tokens and roles end as 401 and 403 by themselves.
3. a route that has to know who asks takes ``caller: Caller`` (``caller.role``, ``caller.actor`` for the audit trail,
   ``caller.csrf``). Public routes ask ``await asking(request)``, which gives None for strangers.
4. the ledger is ``request.app.state.ledger``, the tokens are ``request.app.state.access``.
5. ``app.include_router(router)`` without a prefix.

**Browsers** sign in by a form that posts ``token`` to ``/login`` (which sets the cookie and goes to ``/``), and out by
a form that posts to ``/logout`` (which goes to ``/login``). Every other form carries
``<input type="hidden" name="csrf_token" value="{{ caller.csrf }}">``, or htmx the header ``X-CSRF-Token``: the guard
checks it. Scripts and styles are files of this site: the content security policy allows nothing inside a page.

**Errors for people**: set ``app.state.problem_page`` to a function (request, problem) -> response, and whoever accepts
``text/html`` gets that (send strangers, ``problem.status == 401``, to ``/login`` there); programs get problem+json.
"""
