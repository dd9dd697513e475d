"""The report of a probing run: tables, pictures, and the page that shows them."""
