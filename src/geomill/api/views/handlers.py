"""Views of handlers, from this gateway's registry and from what live workers say they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from geomill.contract.instances import HandlerDetails, HandlerInstance, HandlerList, HandlerSummary
from geomill.sdk.registration import RegisteredHandler
from geomill.sdk.registry import Registry
from geomill.store.instances import ServingInstance


def handler_list(registry: Registry, serving: Sequence[ServingInstance]) -> HandlerList:
    """Return all handlers by their present names, ordered by name."""
    former = {name for handler in registry.values() for name in handler.former_names}
    served = {name for instance in serving for name in instance.handlers}
    names = sorted(({*registry} | served) - former)
    return HandlerList(handlers=[HandlerSummary(**_summary(registry, serving, name)) for name in names])


def handler_details(registry: Registry, serving: Sequence[ServingInstance], name: str) -> HandlerDetails:
    handler = _known(registry, name)
    present_name = handler.info.name if handler else name
    return HandlerDetails(
        **_summary(registry, serving, present_name),
        params_schema=_schema(handler.info.params) if handler else None,
        output_schema=_schema(handler.info.output) if handler else None,
        instances=[
            HandlerInstance(
                instance_id=instance.instance_id,
                version=instance.version,
                code_version=instance.versions.get(present_name),
                hostname=instance.hostname,
                queues=instance.queues,
            )
            for instance in _having(serving, present_name)
        ],
    )


def _summary(registry: Registry, serving: Sequence[ServingInstance], name: str) -> dict[str, Any]:
    having = _having(serving, name)
    handler = _known(registry, name)
    code_versions = {instance.versions[name] for instance in having if name in instance.versions}
    return {
        "name": name,
        "description": handler.info.description if handler else None,
        "queue": handler.info.queue if handler else None,
        "isolated": handler.isolated if handler else None,
        "timeout_seconds": handler.info.timeout_seconds if handler else None,
        "former_names": list(handler.former_names) if handler else [],
        "workers": len(having),
        "versions": sorted({instance.version for instance in having}),
        "code_versions": sorted(code_versions),
        "code_differs": len(code_versions) > 1,
    }


def _known(registry: Registry, name: str) -> RegisteredHandler | None:
    """Return the handler, or None. `Registry.get` would raise, because an unknown handler is an error elsewhere."""
    if name not in registry:
        return None
    return registry[name]


def _having(serving: Sequence[ServingInstance], name: str) -> list[ServingInstance]:
    return [instance for instance in serving if name in instance.handlers]


def _schema(model: type[BaseModel] | None) -> dict[str, Any] | None:
    """Return the JSON Schema of a model; None if it has a type that JSON Schema cannot describe."""
    try:
        return model.model_json_schema() if model else None
    except PydanticInvalidForJsonSchema:
        return None
