"""The transport of an adapter that was given none: made at its first send, of the environment at its own making.

Importing the network code and reading the system's certificates costs more than everything before a first call, so a
process that never sends does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..call import Call
from ..redactor import Redactor
from ..wire.http import HttpRequest
from .interface import ByteStream

if TYPE_CHECKING:
    from .pool import Transport


class OnDemandTransport:
    """A Transport with default settings, made once it is needed. env: the variables that choose its settings.

    ca_variables: of these the ones that name certificates to trust before the usual variables do.
    """

    def __init__(self, env: Mapping[str, str], *, ca_variables: Sequence[str] = ()) -> None:
        self._env: Final = dict(env)
        self._ca_variables: Final = ca_variables
        self._made: Final[dict[None, Transport]] = {}

    @property
    def redactor(self) -> Redactor:
        return self._transport().redactor

    @property
    def read_timeout_ms(self) -> float:
        return self._transport().read_timeout_ms

    def open(self, request: HttpRequest, call: Call) -> ByteStream:
        return self._transport().open(request, call)

    def close(self) -> None:
        for transport in list(self._made.values()):
            transport.close()

    def _transport(self) -> Transport:
        """Two threads that come here first get the same one: setdefault is one step, and no lock that a fork copies."""
        if not self._made:
            from .environment import trust_settings
            from .pool import Transport

            trust = trust_settings(self._env, leading=self._ca_variables)
            self._made.setdefault(None, Transport(env=self._env, ca_certs=trust))
        return self._made[None]
