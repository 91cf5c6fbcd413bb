"""Every stored model, in the order in which their tables can be created."""

from __future__ import annotations

from geomill.domain.api_key import ApiKey
from geomill.domain.asset import Asset, AssetCollection
from geomill.domain.attendance import UnservedQueue
from geomill.domain.audit import AuditEntry
from geomill.domain.callback import Callback
from geomill.domain.catalogue import CatalogueCollection, CataloguePending, ExternalAsset
from geomill.domain.circuit import Circuit
from geomill.domain.definition import Definition
from geomill.domain.entity import Entity
from geomill.domain.event import JobEvent
from geomill.domain.instance import Instance
from geomill.domain.job import Job
from geomill.domain.leftover import AssetLeftover
from geomill.domain.log import TaskLog
from geomill.domain.message import DeadLetter, QueueMessage
from geomill.domain.node import NodeState
from geomill.domain.platform import Platform
from geomill.domain.request import PlatformRequest
from geomill.domain.revision import AssetRevision
from geomill.domain.schedule import Schedule
from geomill.domain.schema_object import SchemaObject
from geomill.domain.stage_job import StageRun
from geomill.domain.tally import Tally
from geomill.domain.task import Checkpoint, InboxEntry, TaskResult

TABLES: tuple[type[Entity], ...] = (
    Definition,
    Job,
    NodeState,
    TaskResult,
    InboxEntry,
    Checkpoint,
    JobEvent,
    TaskLog,
    QueueMessage,
    DeadLetter,
    Instance,
    UnservedQueue,
    Schedule,
    Callback,
    Tally,
    Circuit,
    StageRun,
    Platform,
    AssetCollection,
    Asset,
    PlatformRequest,
    AssetRevision,
    AssetLeftover,
    AuditEntry,
    ApiKey,
    CatalogueCollection,
    CataloguePending,
    SchemaObject,
)

EXTERNAL_TABLES: tuple[type[Entity], ...] = (CatalogueCollection, SchemaObject, ExternalAsset)
"""Those of the external zone's database."""
