"""Connections whose requests must arrive in time, so that idle clients cannot pile up."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""Seconds that the head of a request may take from the connection or the last answer on, and then
its body."""
MOST_BYTES = 1 << 20
"""Most bytes of a request."""


class Connection(H11Protocol):
    """A connection that closes if it has not sent the head of a request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._close_without_request_after, None)

    def on_response_complete(self) -> None:
        # uvicorn's own clock stops at the first byte
        self.loop.call_later(PATIENCE, self._close_without_request_after, self.cycle)
        super().on_response_complete()

    def _close_without_request_after(self, last: object) -> None:
        """Close the connection if its last request is still this one, or None."""
        if self.cycle is last:
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
