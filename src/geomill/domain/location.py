"""The location of a zone: a folder, an Azure storage account or an S3 bucket. Only the operator sets it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from geomill.domain.objectname import check_path
from geomill.errors import InvalidName

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HELP = "give a folder, az://account[/prefix] or s3://bucket[/prefix]"


@dataclass(frozen=True, slots=True)
class Folder:
    """A local folder. Containers are folders in it."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """An Azure storage account. Containers are its containers; the prefix is a folder in each of them."""

    account: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"az://{self.account}" + (f"/{self.prefix}" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """An S3 bucket. Containers are folders in it, under the prefix."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


Location = Folder | AzureAccount | S3Bucket


def parse_location(text: str) -> Location:
    """Parse the location of a zone. The message of `InvalidName` does not repeat the value, which may have a password
    in it."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return Folder(_folder(text))
    head, _, prefix = rest.partition("/")
    if prefix := prefix.rstrip("/"):
        check_path(prefix, "the prefix")
    if scheme == "az" and _ACCOUNT.fullmatch(head):
        return AzureAccount(head, prefix)
    if scheme == "s3" and _BUCKET.fullmatch(head):
        return S3Bucket(head, prefix)
    raise InvalidName("this is not the location of a zone", remedy=_HELP)


def _folder(text: str) -> Path:
    if not text.strip() or "\0" in text or "AccountKey=" in text or text.startswith("/vsi"):
        raise InvalidName("this is not the location of a zone", remedy=_HELP)
    return Path(text).expanduser()
