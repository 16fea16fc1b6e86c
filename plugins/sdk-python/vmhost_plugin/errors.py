"""Errors of the SDK. The text of an exception becomes `retry(text)`."""


class Error(Exception):
    """A failure of a turn, with a text for people. Raised by `reconcile`, it is a transient
    failure, like any other exception."""


class ReadError(Error):
    """A read of the cluster failed. A missing object is not an error."""


class NotWatched(ReadError):
    """The description does not let this controller read the kind (or not in this namespace, or live
    only)."""

    def __init__(self, what: str, kind: str) -> None:
        super().__init__(f"{what} cannot be read: the description does not let this controller read {kind}")
        self.kind = kind


class TooLarge(ReadError):
    """The answer is larger than `limit` bytes: query fewer objects, or only their metadata."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} cannot be read: the answer is larger than {limit} bytes")
        self.limit = limit


class Invalid(ReadError):
    """The query is invalid: a bad selector, an index that is not declared, a foreign continue
    token."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read: {reason}")
        self.reason = reason


class Unavailable(ReadError):
    """A live read was not answered, or refused."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read live: {reason}")
        self.reason = reason


def text_of(error: BaseException) -> str:
    """Returns the text of an exception for people. Names the type if there is no text, and for a
    KeyError, whose text is only the key."""
    text = str(error)
    name = type(error).__name__
    if not text:
        return name
    return f"{name}: {text}" if isinstance(error, KeyError) else text
