"""The base of all that the project refuses: an IsaError, a CompileError, a user's mistake."""


class Refusal(ValueError):
    """What cannot be done, told in one sentence; a script prints it without a traceback."""
