"""Connections whose requests must arrive in time, so that idle clients cannot pile up."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""Seconds within which a new connection must send its first request, and a request its body."""
MOST_BYTES = 1 << 20
"""Most bytes of a request."""


class Connection(H11Protocol):
    """A connection that closes if it has not sent the head of a request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


async def body_of(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        HTTPException: it has too many bytes, or did not arrive in time.
    """
    try:
        return await asyncio.wait_for(_read(request), PATIENCE)
    except asyncio.TimeoutError as error:
        late = f"the request did not arrive within {PATIENCE:g} seconds: send it again"
        raise HTTPException(408, late, {"Connection": "close"}) from error


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(
                413, f"a request has at most {MOST_BYTES:,} bytes: send fewer texts"
            )
    return bytes(body)
