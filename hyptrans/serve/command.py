"""``hyptrans serve``: offer models over HTTP until a signal stops it."""

import argparse
import os
import pkgutil
import signal
import socket
import sys

from hyptrans.inference.load import MODEL_HELP, load
from hyptrans.inference.plugin import add_user_dir
from hyptrans.inference.sentences import check_bounded
from hyptrans.support.errors import UserError, one_line
from hyptrans.support.extras import require
from hyptrans.support.flags import add_device, add_engine, positive

_HERE = ["127.0.0.1", "localhost"]
_GRACE = 30
"""Seconds after SIGTERM in which running requests may finish."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help=MODEL_HELP)
    about = "IPv4 address to listen on; 0.0.0.0 lets other machines in (default: %(default)s)"
    add("--host", default=_HERE[0], metavar="ADDRESS", help=about)
    about = "port to listen on; 0 picks a free one (default: %(default)s)"
    add("--port", type=int, default=8000, metavar="N", help=about)
    about = "refuse longer texts (default: %(default)s)"
    add("--max-characters", type=positive, default=2000, metavar="N", help=about)
    about = "refuse requests while this many texts wait (default: %(default)s)"
    add("--max-waiting", type=positive, default=1000, metavar="N", help=about)
    add_engine(parser)
    add_device(parser)
    add_user_dir(parser)


def main(args: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer the requests that have already arrived."""
    check_bounded(0, 65535, port=args.port)
    uvicorn = require("uvicorn", "serve")
    from hyptrans.serve.app import Service
    from hyptrans.serve.connection import Connection

    models = {place: load(place, device=args.device, engine=args.engine) for place in args.models}
    # imports torch, which the other engine does without
    look = pkgutil.resolve_name("hyptrans.serve.look:look") if args.engine == "torch" else None
    for model in models.values():
        # the first call compiles kernels; without this, the first client would wait for them
        model.translate(".") if look is None else look(model, ["."])
    try:
        listening = socket.create_server((args.host, args.port))
    except OSError as error:
        where = f"--host {args.host} --port {args.port}"
        raise UserError(f"{where} cannot be used ({error}): name another") from error
    service = Service(models, args.max_characters, args.max_waiting, look)
    config = uvicorn.Config(
        service.app(_HERE if args.host in _HERE else ["*"]),
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        headers=[*_HEADERS.items()],
        timeout_graceful_shutdown=_GRACE,
    )
    address = f"http://{args.host}:{listening.getsockname()[1]}"
    sys.stdout.write(one_line(f"{', '.join(models)} at {address} (Ctrl-C ends it)") + "\n")
    sys.stdout.flush()
    # uvicorn answers the requests that have arrived and then raises the signal again
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        if service.line.busy:  # a batch outlived the grace, and Python would wait for its thread
            os._exit(0)
