"""The rule of who sees what in the files of statements, as `domain/access/visibility.py` writes it.

`{served asset as a}` becomes the condition under which anybody sees something of the asset `a`, and
`{seen revision of asset as a}` the revision of a served asset that the caller sees.
"""

from __future__ import annotations

import re

_RULE = re.compile(r"\{(?P<rule>served|seen revision of) asset as (?P<alias>\w+)\}")


def with_rules(statement: str) -> str:
    """Returns the statement with the rule in the place of `{served asset as …}` and the like."""
    return _RULE.sub(_written, statement)


def _written(placeholder: re.Match[str]) -> str:
    from geomill.domain.access.visibility import SEEN_REVISION_SQL, SERVED_SQL

    text = SERVED_SQL if placeholder["rule"] == "served" else SEEN_REVISION_SQL
    return text.replace("{asset}", placeholder["alias"])
