"""The server's answer to each request; an error is ``{"error": sentence}``."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from hyptrans.inference.options import BEAM, LENPEN, MOST_LENPEN
from hyptrans.inference.sentences import check_at_least_one, check_bounded
from hyptrans.serve.connection import body_of
from hyptrans.serve.line import Kind, Line
from hyptrans.support.errors import UserError

FIELDS = ("texts", "model", "beam", "n_best", "length_penalty")
MOST_BEAM = 20
_OFFERED = "this server offers POST /translate, GET /models, GET /health and its page at /"


class Service:
    """Loaded models and the queue of requests to them.

    Args:
        models: translators by name.
        max_characters: most characters of a text.
        max_waiting: most texts that may be unanswered at a time.
        look: returns what the page draws for a model and texts; None for translations alone.

    Attributes:
        line: the queue.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        max_characters: int,
        max_waiting: int,
        look: Callable[..., list[Any]] | None,
    ) -> None:
        self._models, self._longest, self._most = models, max_characters, max_waiting
        self._look = look
        self.line = Line(self._run)

    def app(self, hosts: Sequence[str]) -> Starlette:
        """Return the application; it refuses requests to any host not in ``hosts``."""
        return Starlette(
            routes=[
                Route("/translate", self._translate, methods=["POST"]),
                Route("/look", self._translate, methods=["POST"]),
                Route("/models", self._list),
                Route("/health", self._health),
                Mount("/", StaticFiles(directory=Path(__file__).parent / "page", html=True)),
            ],
            # otherwise a foreign page whose domain resolves to this server could read the answers
            middleware=[Middleware(TrustedHostMiddleware, hosts, www_redirect=False)],
            exception_handlers={
                HTTPException: _refused,
                # the client disconnected before its request was complete: nothing to log
                ClientDisconnect: _failed,
                Exception: _failed,
            },
            lifespan=self.line.working,
        )

    def _run(self, kind: Kind, texts: list[str]) -> list[Any]:
        model = self._models[kind.model]
        options = {"beam": kind.beam, "length_penalty": kind.length_penalty, "progress": False}
        if kind.path == "/look" and self._look is not None:
            return self._look(model, texts, **options)
        rows = [[one.as_json() for one in row] for row in model.n_best(texts, **options)]
        return [{"translations": row} for row in rows] if kind.path == "/look" else rows

    async def _translate(self, request: Request) -> Response:
        fields = await _fields(request)
        name = fields.get("model", next(iter(self._models)))
        if name not in [*self._models]:
            raise HTTPException(400, f"model must be one of {', '.join(self._models)}")
        texts, (beam, n, penalty) = self._texts(name, fields.get("texts")), _options(fields)
        looks = request.url.path == "/look"
        if looks and len(texts) != 1:
            raise HTTPException(400, "/look takes exactly one text")
        if self.line.unanswered + len(texts) > self._most:
            sentence = f"the queue is full ({self._most:,} texts): try again later"
            raise HTTPException(429, sentence, {"Retry-After": "1"})
        kind = Kind(request.url.path, name, beam, penalty)
        try:
            found = await self.line.ask(kind, texts)
        except asyncio.CancelledError as error:
            raise HTTPException(503, "the server is stopping: try again later") from error
        results = found if looks else [row[:n] for row in found]
        return JSONResponse({"model": name, "results": results})

    def _texts(self, name: str, given: Any) -> list[str]:
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise HTTPException(400, "texts must be a string or a list of strings")
        if len(texts) > self._most:
            many = f"the request has {len(texts):,} texts: send at most {self._most:,}"
            raise HTTPException(413, many)
        for i, text in enumerate(texts):
            if len(text) > self._longest:
                most = f"at most {self._longest:,} are taken: split it"
                raise HTTPException(413, f"texts[{i}] has {len(text):,} characters, {most}")
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise HTTPException(400, f"texts[{i}] contains an unpaired surrogate: send UTF-8")
        for i, tokens in self._models[name].too_long(texts).items():
            most = f"{name} takes {self._models[name].max_tokens:,}: split it"
            raise HTTPException(413, f"texts[{i}] has {tokens:,} tokens, {most}")
        return texts

    async def _list(self, request: Request) -> Response:
        about = ("architecture", "languages", "max_tokens")
        models = self._models.items()
        return JSONResponse(
            [
                {"name": name} | {fact: getattr(model, fact) for fact in about}
                for name, model in models
            ]
        )

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "unanswered": self.line.unanswered})


async def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request, and refuse unknown ones."""
    # a browser asks permission to send this type to another origin, and this server never gives it
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "content-type must be application/json")
    body = await body_of(request)
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise HTTPException(400, f"the request must be a JSON object of {', '.join(FIELDS)}")
    for name in fields.keys() - set(FIELDS):
        raise HTTPException(400, f"{name[:40]!a} is not a field: fields are {', '.join(FIELDS)}")
    return fields


def _options(fields: Mapping[str, Any]) -> tuple[int, int, float]:
    """Return the beam, the number of translations and the length penalty."""
    beam, n = fields.get("beam", BEAM), fields.get("n_best", 1)
    penalty = fields.get("length_penalty", LENPEN)
    try:
        for name, value, most in (("beam", beam, MOST_BEAM), ("n_best", n, beam)):
            if isinstance(value, int) and value > most:
                raise UserError(f"{name} must be at most {most}, got {value}")
            check_at_least_one(**{name: value})
        check_bounded(-MOST_LENPEN, MOST_LENPEN, length_penalty=penalty)
    except (TypeError, UserError) as error:
        raise HTTPException(400, str(error)) from error
    return beam, n, float(penalty)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _OFFERED if error.status_code in (404, 405) else error.detail
    return JSONResponse({"error": sentence}, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the server failed, its log says why"}, 500)
