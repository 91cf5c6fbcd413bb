"""Tables of a report, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.chaos.faults import FAULTS
from tests.chaos.scenario import Outcome

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
SHOWN = (1, 2, 4, 5, 6, 7)
"""The columns in which two runs are compared."""


def of_outcomes(outcomes: Sequence[Outcome]) -> str:
    return table(HEAD, [_row(outcome.record()) for outcome in outcomes])


def compared(before: Sequence[Record], after: Sequence[Record]) -> str:
    """Two runs side by side, one row for each fault."""
    former, latter = ({str(record["fault"]): record for record in records} for records in (before, after))
    head = (
        "fault",
        "first job",
        "",
        "all before",
        "",
        "taken over",
        "",
        "begun again",
        "",
        "bad answers",
        "",
        "violations",
        "",
    )
    rows: list[tuple[str, ...]] = [("", *("before", "after") * len(SHOWN))]
    for name in [name for name in FAULTS if name in former or name in latter]:
        old, new = (_row(records[name]) if name in records else None for records in (former, latter))
        pairs = [(old[column] if old else NOT_MEASURED, new[column] if new else NOT_MEASURED) for column in SHOWN]
        rows.append((FAULTS[name].title, *(cell for pair in pairs for cell in pair)))
    return table(head, rows)


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
    """Where work must go on during the fault, what comes only after it is none."""
    fault, recovery, lasted = FAULTS[record["fault"]], record["recovery"], record["lasted"]
    if fault.lasting and fault.seconds and (recovery is None or recovery > lasted):
        return f"not in {lasted:.0f} s"
    return seconds(recovery)
