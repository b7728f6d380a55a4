"""The one exception that is the user's to mend."""


class UserError(Exception):
    """A mistake in settings, data or surroundings: says what is wrong, where, and the way out."""
