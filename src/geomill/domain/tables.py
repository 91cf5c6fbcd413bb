"""Every stored model, in the order in which their tables can be created."""

from __future__ import annotations

from geomill.domain.access.api_key import ApiKey
from geomill.domain.access.operator_audit import OperatorAuditEntry
from geomill.domain.access.session import ConsoleSession
from geomill.domain.assets.asset import Asset, AssetCollection
from geomill.domain.assets.audit import AuditEntry
from geomill.domain.assets.catalogue import CatalogueCollection, CataloguePending, ExternalAsset
from geomill.domain.assets.extract import Extract
from geomill.domain.assets.leftover import AssetLeftover
from geomill.domain.assets.platform import Platform
from geomill.domain.assets.request import PlatformRequest
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.assets.style import AssetStyle
from geomill.domain.assets.upload import Upload, UploadPart
from geomill.domain.engine.attendance import UnservedQueue
from geomill.domain.engine.callback import Callback
from geomill.domain.engine.circuit import Circuit
from geomill.domain.engine.definition import Definition
from geomill.domain.engine.event import JobEvent
from geomill.domain.engine.instance import Instance, InstanceHandlers
from geomill.domain.engine.job import Job
from geomill.domain.engine.log import TaskLog
from geomill.domain.engine.message import DeadLetter, QueueMessage
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.schedule import Schedule
from geomill.domain.engine.stage_job import StageRun
from geomill.domain.engine.task import AttemptResult, Checkpoint, InboxEntry
from geomill.domain.entity import Entity
from geomill.domain.schema_object import SchemaObject
from geomill.domain.schema_step import SchemaStep
from geomill.domain.tally import Tally

TABLES: tuple[type[Entity], ...] = (
    Definition,
    Job,
    NodeState,
    AttemptResult,
    InboxEntry,
    Checkpoint,
    JobEvent,
    TaskLog,
    QueueMessage,
    DeadLetter,
    Instance,
    InstanceHandlers,
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
    AssetStyle,
    Extract,
    Upload,
    UploadPart,
    AuditEntry,
    ApiKey,
    ConsoleSession,
    OperatorAuditEntry,
    CatalogueCollection,
    CataloguePending,
    SchemaObject,
    SchemaStep,
)

EXTERNAL_TABLES: tuple[type[Entity], ...] = (CatalogueCollection, SchemaObject, SchemaStep, ExternalAsset)
"""The tables of the external zone's database."""
