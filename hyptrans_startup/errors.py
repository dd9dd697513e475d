"""The one error for what a user can mend; here, as the start-up hook may import nothing else."""


class UserError(Exception):
    """What the user gave cannot be used; one sentence says what, what was found, what to do."""
