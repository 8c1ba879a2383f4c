"""Connections, which anybody on this machine may open: none may wait in silence for long."""

from __future__ import annotations

import asyncio
import resource

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds for a request's header
MOST = 512  # connections


def most_connections() -> int:
    """Half of the files that this process may have open, so that there always is one for the next
    connection."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if soft == resource.RLIM_INFINITY else min(MOST, max(soft // 2, 8))


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose header does not come; and where there are too many, the one that
    has said nothing for longest, so that whoever asks at once is always heard."""

    most = most_connections()
    silence: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn's own: one that writes
        self, transport: asyncio.Transport
    ) -> None:
        """Wait for a header."""
        super().connection_made(transport)
        self.silence = self.loop.call_later(PATIENCE, self.give_up)
        if len(self.connections) > self.most:
            own = [each for each in self.connections if isinstance(each, ImpatientProtocol)]
            silent = [(each.silence.when(), id(each), each) for each in own if each.silence]
            min(silent)[-1].give_up()

    def data_received(self, data: bytes) -> None:
        """A header has come, or a part of one."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._hear()
        elif self.silence is None:  # between two requests uvicorn waits, but for the first byte
            self.silence = self.loop.call_later(PATIENCE, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._hear()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Hang up."""
        self._hear()
        self.transport.close()

    def _hear(self) -> None:
        if self.silence is not None:
            self.silence.cancel()
            self.silence = None
