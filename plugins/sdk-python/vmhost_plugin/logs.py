"""The standard `logging` module writes to the host's log: `logging.info("...")`, or a logger of the
module's own."""

import logging
from collections.abc import Callable

TRACE = 5
"""The host's level below debug: `logging.log(TRACE, ...)`."""


class HostHandler(logging.Handler):
    """Passes each record to `write(level, message)`, with the host's level names. The host adds
    controller, object and reconcile ID."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)
        except Exception as error:  # a bad format string must not fail a turn
            message = f"{record.msg!r} cannot be logged with {record.args!r}: {error}"
        self._write(level_name(record.levelno), message)


def level_name(level: int) -> str:
    """Returns the host's level for a level of `logging`."""
    if level >= logging.ERROR:
        return "error"
    if level >= logging.WARNING:
        return "warn"
    if level >= logging.INFO:
        return "info"
    return "debug" if level >= logging.DEBUG else "trace"


def install(handler: logging.Handler) -> None:
    """Sends all records only to `handler`; the host decides which levels are shown."""
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(1)
    logging.addLevelName(TRACE, "TRACE")
