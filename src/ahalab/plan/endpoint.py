"""What generates the answers of a plan: its backend, and the models that an endpoint serves."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import UNSET

from ahalab.errors import PlanError
from ahalab.plan.cells import Cell, training_cells
from ahalab.plan.fields import suggestion
from ahalab.plan.templates import template_arguments
from ahalab.records.plan import EndpointSpec, Plan

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
MAX_CONCURRENCY = 512
MAX_RETRIES = 100


def backend_name(plan: Plan) -> str:
    """Return the name of the backend that answers."""
    chosen = plan.evaluation.backend
    return "transformers" if chosen is UNSET else chosen


def endpoint_of(plan: Plan) -> EndpointSpec:
    """Return the endpoint of a plan whose backend is `openai`.

    Raises:
        PlanError: It names none.
    """
    if plan.evaluation.endpoint is UNSET:
        raise PlanError(
            "evaluation.endpoint: expected the endpoint that backend openai asks (url, base, "
            "adapter), found none. Add it, or choose another backend."
        )
    return plan.evaluation.endpoint


def model_name(plan: Plan, cell: Cell) -> str:
    """Return the name under which an endpoint serves a cell: the base, or one of the adapters."""
    endpoint = endpoint_of(plan)
    if cell.arm is None:
        return endpoint.base
    if isinstance(endpoint.adapter, dict):
        return endpoint.adapter[cell.name]
    # str.replace, not str.format: other braces are text.
    return endpoint.adapter.replace("{arm}", cell.arm).replace("{seed}", str(cell.seed))


def check_backend(plan: Plan) -> None:
    """Check the choice of a backend, and the endpoint where there is one.

    Raises:
        PlanError: The plan contradicts itself; the message starts with the key.
    """
    name = backend_name(plan)
    if name == "openai":
        _check_endpoint(plan, endpoint_of(plan))
    elif plan.evaluation.endpoint is not UNSET:
        raise PlanError(
            f"evaluation.endpoint: expected none with backend {name}, found one. "
            "Set evaluation.backend: openai, or drop the endpoint."
        )
    if name == "vllm" and plan.model.device != "cuda":
        raise PlanError(
            f"evaluation.backend: expected model.device cuda for vllm, found {plan.model.device}. "
            "Set the device, or take transformers."
        )


def _check_endpoint(plan: Plan, endpoint: EndpointSpec) -> None:
    place = "evaluation.endpoint"
    _check_url(f"{place}.url", endpoint.url)
    for key, value, most in (
        ("concurrency", endpoint.concurrency, MAX_CONCURRENCY),
        ("max_retries", endpoint.max_retries, MAX_RETRIES),
    ):
        least = 0 if key == "max_retries" else 1
        if not least <= value <= most:
            raise PlanError(
                f"{place}.{key}: expected a number from {least} to {most}, found {value}."
            )
    if endpoint.timeout_s <= 0:
        raise PlanError(f"{place}.timeout_s: expected seconds above 0, found {endpoint.timeout_s}.")
    variable = endpoint.api_key_env
    if variable is not None and not VARIABLE.fullmatch(variable):
        raise PlanError(  # what stands there may be the key itself, so it is not repeated
            f"{place}.api_key_env: expected the name of an environment variable, found something "
            "else. The key itself never stands in a plan: plans are published."
        )
    if endpoint.api == "chat" and template_arguments(plan):
        raise PlanError(
            f"{place}.api: expected completions, since grpo.chat_template_kwargs change how a "
            "prompt is put and a chat endpoint is not told of them, found chat."
        )
    _check_names(plan, endpoint)


def _check_url(place: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        secret, host, _ = parts.username or parts.password, parts.hostname, parts.port
    except ValueError:
        secret, host, parts = None, None, urlsplit("")
    if secret:
        raise PlanError(
            f"{place}: expected no user or password in it, found one. Plans are published: put a "
            "key into an environment variable, and its name into api_key_env."
        )
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise PlanError(
            f"{place}: expected http:// or https://, a host and a path such as /v1, found "
            f"{url.partition('?')[0][:80]!r}{' and a query' if '?' in url else ''}."
        )
    if parts.path.rstrip("/").endswith(("/completions", "/models")):
        raise PlanError(
            f"{place}: expected the address up to /v1, found {url[:80]!r}. Drop what follows /v1."
        )


def _check_names(plan: Plan, endpoint: EndpointSpec) -> None:
    place, cells = "evaluation.endpoint.adapter", training_cells(plan)
    names = [cell.name for cell in cells]
    if isinstance(endpoint.adapter, dict):
        for key in endpoint.adapter:
            if key not in names:
                raise PlanError(
                    f"{place}.{key}: expected the plan's cells (arms/ARM/seed-S), found "
                    f"{key[:80]!r}.{suggestion(key, names)}"
                )
        absent = [name for name in names if name not in endpoint.adapter]
        if absent:
            raise PlanError(
                f"{place}: expected a model for every cell, found none for {', '.join(absent)}."
            )
    taken = {endpoint.base: "base"}
    for cell in cells:
        model = model_name(plan, cell)
        if model in taken:
            raise PlanError(
                f"{place}: expected another model for each of base and adapters, found "
                f"{model[:80]!r} for {taken[model]} and {cell.name}. Put {{arm}} and {{seed}} into "
                "it, or give a model per cell."
            )
        taken[model] = cell.name
    for model in taken:
        if not model.strip() or not model.isprintable():
            raise PlanError(f"{place}: expected names of models, found {model[:80]!r}.")
