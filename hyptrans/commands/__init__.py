"""The commands of ``hyptrans``, one file each, with ``add_arguments`` and ``main``.

``main`` raises :class:`~hyptrans.support.errors.UserError` for whatever the user can put right; the
program prints its sentence.
"""
