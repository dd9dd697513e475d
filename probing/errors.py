"""What a user can mend."""


class ProbingError(Exception):
    """A file, flag or value that is wrong; one sentence that names it and says what to do."""
