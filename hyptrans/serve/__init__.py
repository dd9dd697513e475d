"""``hyptrans serve``: loaded models over HTTP, and a page to try them."""
