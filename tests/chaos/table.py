"""Tables of a report, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.chaos.faults import FAULTS
from tests.chaos.scenario import FaultOutcome

Record = Mapping[str, Any]
NOT_MEASURED = ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[number]) for row in (head, *rows)) for number in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"


HEAD = ("fault", "first job", "all before", "standstill", "taken over", "begun again", "bad answers", "violations")


def of_outcomes(outcomes: Sequence[FaultOutcome]) -> str:
    return table(HEAD, [_row(outcome.record()) for outcome in outcomes])


def compared(before: Sequence[Record], after: Sequence[Record]) -> str:
    """Two runs side by side, one row for each fault: before → after."""
    former, latter = ({str(record["fault"]): record for record in records} for records in (before, after))
    names = [name for name in FAULTS if name in former or name in latter]
    return table(HEAD, [_pair(FAULTS[name].title, former.get(name), latter.get(name)) for name in names])


def _pair(title: str, old: Record | None, new: Record | None) -> list[str]:
    nothing = [NOT_MEASURED] * len(HEAD)
    former, latter = (nothing if record is None else _row(record) for record in (old, new))
    return [title, *(f"{left} → {right}".strip() for left, right in zip(former[1:], latter[1:], strict=True))]


def _row(record: Record) -> list[str]:
    if record["skipped"]:
        return [record["title"], f"skipped: {record['skipped']}", *[NOT_MEASURED] * (len(HEAD) - 2)]
    answers = record["answers"]
    bad = sum(count for code, count in answers.items() if not code.isdecimal() or int(code) >= 500)
    return [
        record["title"],
        _recovery(record),
        seconds(record["settled"]),
        seconds(record["standstill"]),
        seconds(record["taken_over"]) if record.get("taken_over") is not None else NOT_MEASURED,
        str(record["begun_again"]),
        f"{bad} of {sum(answers.values())}",
        str(len(record["violations"])),
    ]


def _recovery(record: Record) -> str:
    """Return the recovery time. If work must continue during the fault, a recovery after it does not count."""
    fault, recovery, lasted = FAULTS[record["fault"]], record["recovery"], record["lasted"]
    if fault.lasting and fault.seconds and (recovery is None or recovery > lasted):
        return f"not in {lasted:.0f} s"
    return seconds(recovery)
