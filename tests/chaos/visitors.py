"""The external zone as visitors have it: an external server that answers, and what was revoked is gone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
import psycopg

from tests.chaos.platform import ChaosPlatform
from tests.chaos.users import AGAIN_SECONDS, NO_ANSWER

PATH = "/stac/collections"


@dataclass
class Visitors:
    """One visitor of each external server, who asks again and again."""

    platform: ChaosPlatform
    answers: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for number in range(self.platform.servers):
            thread = threading.Thread(target=self._visit, args=(number,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _visit(self, number: int) -> None:
        with httpx.Client(base_url=self.platform.role_url("serve", number), timeout=5.0) as client:
            while not self.stop.wait(AGAIN_SECONDS):
                try:
                    self.answers[str(client.get(PATH).status_code)] += 1
                except httpx.HTTPError:
                    self.answers[NO_ANSWER] += 1


def revoked_outside(external_url: str, asset_ids: Sequence[str]) -> list[str]:
    """Return the assets of these, all revoked, that the external zone still has."""
    query = "SELECT asset_id FROM external.assets WHERE asset_id = ANY(%s)"
    with psycopg.connect(external_url) as conn:
        rows = conn.execute(query, [list(asset_ids)]).fetchall()
    return [f"{asset_id} was revoked, and the external zone still has it" for (asset_id,) in rows]
