"""What can go wrong, and how it is told: the text of an exception becomes `retry(text)`."""


class Error(Exception):
    """A failure of a turn: its text, for people. Raised by `reconcile`, it is a transient failure, as any other exception."""


class ReadError(Error):
    """A read of the cluster that was not answered. An object that does not exist is no error."""


class NotWatched(ReadError):
    """The description does not let this controller read the kind (or not in this namespace, or live only)."""

    def __init__(self, what: str, kind: str) -> None:
        super().__init__(f"{what} cannot be read: the description does not let this controller read {kind}")
        self.kind = kind


class TooLarge(ReadError):
    """The answer is larger than `limit` bytes: ask for fewer objects, or for their metadata only."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} cannot be read: the answer is larger than {limit} bytes")
        self.limit = limit


class Invalid(ReadError):
    """The question makes no sense: a bad selector, an index that is not declared, a foreign continue token."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read: {reason}")
        self.reason = reason


class Unavailable(ReadError):
    """A live read was not answered, or refused."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read live: {reason}")
        self.reason = reason


def text_of(error: BaseException) -> str:
    """The text of an exception for people. A KeyError's text is the key alone, and some exceptions have none: their type is named."""
    text = str(error)
    name = type(error).__name__
    if not text:
        return name
    return f"{name}: {text}" if isinstance(error, KeyError) else text
