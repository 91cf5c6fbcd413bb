"""Puts large outputs into the object store before the result is reported."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geomill.domain.engine.large import LARGE, LargeOutput
from geomill.domain.engine.message import TaskMessage
from geomill.domain.ids import SINGLE
from geomill.domain.jsonvalue import to_json
from geomill.errors import GeomillError, UnavailableError
from geomill.sdk.execution import Ended, failed
from geomill.storage import NO_STORAGE, Storage


@dataclass(frozen=True)
class Aside:
    storage: Storage

    def wants(self, ended: Ended) -> bool:
        return len(ended.text) > LARGE and self.storage is not NO_STORAGE

    async def put(self, message: TaskMessage, ended: Ended) -> Ended:
        """Store the output. Returns the result to report."""
        content = ended.text.encode()
        item = "" if message.item_index == SINGLE else f".{message.item_index}"  # node ids have no dots
        large = LargeOutput.of(message.job_id, f"{message.node_id}{item}", message.attempt, content)
        try:
            await self.storage.put_bytes(large.name, content)
        except GeomillError as error:
            retryable = isinstance(error, UnavailableError)
            return failed(f"the output could not be stored: {error}", error.code, retryable=retryable)
        return replace(ended, text=to_json(large.output()))
