"""The routes of the API: what each takes of a request, checked by pydantic, and what it describes.

Starlette's routes do the rest. What a route takes is found out at its first request, and what it
answers with only for the OpenAPI document, so a server starts without either.
"""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from streams import codec
from streams.serve.api.problems import MEDIA_TYPE, bad_parameter

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
Check: TypeAlias = Callable[[Request], Awaitable[None]]
"""Raises Problem for a request that is refused."""
Resolve: TypeAlias = Callable[[str], Awaitable[str]]
"""Returns the id of the session that a part of an address names, else the part itself."""

_OWN: Final = "/v1/"
"""Routes elsewhere are polled by existing front ends, which may add parameters of their own."""

_REQUEST: Final = "request"

_MISSING: Final = object()

_NAMED: Final = 10
_NAME: Final = 100
"""Parameters in an error, and characters of each: an address may hold thousands."""


class Header:
    """Marks a parameter that is the header of its name, with hyphens."""


class Addressed:
    """Marks a parameter that is a session's part of an address: the route gets the id itself."""


class Described(NamedTuple):
    """What the OpenAPI document says of a route, in addition to its parameters and its answer.

    `body` is that of a route that reads it by itself.
    """

    operation_id: str
    tag: str
    summary: str
    responses: Mapping[int, dict[str, Any]]
    status: int = 200
    body: Mapping[str, Any] | None = None


class Parameter(NamedTuple):
    """What a route takes, under its name there; `argument` is that of the route's function."""

    argument: str
    name: str
    place: Literal["path", "query", "header", "body"]
    is_list: bool = False
    is_addressed: bool = False


class PlainRoute(Route):
    """A route that is noted in the scope: the guard counts requests by it, and HEAD as its GET."""

    def __init__(self, path: str, endpoint: Endpoint, method: str = "GET") -> None:
        super().__init__(path, endpoint)
        self.method, self.methods = method, {method}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return how the route matches, and what it adds to the scope."""
        match, more = super().matches(scope)
        return match, {**more, "route": self}


class ApiRoute(PlainRoute):
    """A route whose function takes parameters, by the annotations of its arguments.

    One that is named in the path is of the path, a pydantic model is the body in JSON, `Header`
    marks a header, and all others are of the query. An argument `request` is the request itself.
    """

    def __init__(
        self,
        method: str,
        path: str,
        function: Endpoint,
        described: Described,
        resolve: Resolve,
        check: Check | None = None,
    ) -> None:
        super().__init__(path, self._respond, method)
        self.function, self.described = function, described
        self._resolve, self._check = resolve, check

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What the route takes, in the order of its arguments."""
        return [self._parameter(each) for name, each in self._arguments.items() if name != _REQUEST]

    @cached_property
    def model(self) -> type[BaseModel]:
        """The pydantic model of the parameters, by the names of the arguments."""
        arguments = [self._arguments[each.argument] for each in self.parameters]
        fields: dict[str, Any] = {
            each.name: (each.annotation, ... if each.default is each.empty else each.default)
            for each in arguments
        }
        return create_model(self.described.operation_id, **fields)

    @cached_property
    def _arguments(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    def _parameter(self, argument: inspect.Parameter) -> Parameter:
        name, parts = argument.name, _parts(argument.annotation)
        is_addressed = any(isinstance(each, Addressed) for each in parts)
        if name in self.param_convertors:
            return Parameter(name, name, "path", is_addressed=is_addressed)
        if any(isinstance(each, Header) for each in parts):
            return Parameter(name, name.replace("_", "-"), "header")
        if any(inspect.isclass(each) and issubclass(each, BaseModel) for each in parts):
            return Parameter(name, name, "body")
        is_list = any(get_origin(each) is list for each in parts)
        return Parameter(name, name, "query", is_list, is_addressed)

    async def _respond(self, request: Request) -> Response:
        if request.url.path.startswith(_OWN):
            self._refuse_unknown(request)
        if self._check is not None:
            await self._check(request)
        values = {each.argument: await _value(request, each) for each in self.parameters}
        given = {argument: value for argument, value in values.items() if value is not _MISSING}
        try:
            checked = self.model.model_validate(given)
        except ValidationError as error:
            raise bad_parameter(*map(self._wrong, error.errors(include_url=False))) from None
        arguments = {each.argument: getattr(checked, each.argument) for each in self.parameters}
        for each in self.parameters:
            if each.is_addressed:
                arguments[each.argument] = await self._resolved(arguments[each.argument])
        if _REQUEST in self._arguments:
            arguments[_REQUEST] = request
        return await self.function(**arguments)

    async def _resolved(self, value: str | list[str] | None) -> str | list[str] | None:
        """Return the ids that parts of an address name."""
        if isinstance(value, list):
            return [await self._resolve(each) for each in value]
        return None if value is None else await self._resolve(value)

    def _refuse_unknown(self, request: Request) -> None:
        """Raise Problem for query parameters that the route does not have."""
        allowed = [each.name for each in self.parameters if each.place == "query"]
        unknown = [name for name in dict.fromkeys(request.query_params) if name not in allowed]
        if unknown:
            wrong = [(name[:_NAME], _hint(name, allowed)) for name in unknown[:_NAMED]]
            raise bad_parameter(*wrong)

    def _wrong(self, error: ErrorDetails) -> tuple[str, str]:
        """Return the parameter of an error, or the part of the body, and what is wrong."""
        argument, *inner = map(str, error["loc"])
        parameter = next(each for each in self.parameters if each.argument == argument)
        is_body = parameter.place == "body"
        message = "must be a JSON object" if is_body and not inner else error["msg"]
        return inner[0] if is_body and inner else parameter.name, message


class Router:
    """Collects routes, by a decorator of their functions. `resolve` is for `Addressed`."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.routes: list[ApiRoute] = []

    def add(
        self, method: str, path: str, described: Described, check: Check | None = None
    ) -> Callable[[Endpoint], Endpoint]:
        """Add the route of a function; `check` comes before its parameters are looked at."""

        def decorate(function: Endpoint) -> Endpoint:
            route = ApiRoute(method, path, function, described, self._resolve, check)
            self.routes.append(route)
            return function

        return decorate


def problems_of(*statuses: int) -> dict[int, dict[str, Any]]:
    """Return the description of a route's errors, for these statuses."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemShape"}}},
        }
        for status in statuses
    }


async def _value(request: Request, parameter: Parameter) -> object:
    """Return what a request has of a parameter, unchecked.

    Raises Problem for a body that is not JSON, or did not come whole.
    """
    name = parameter.name
    if parameter.place == "path":
        return request.path_params[name]
    if parameter.place == "header":
        return request.headers.get(name, _MISSING)
    if parameter.place == "query":
        if parameter.is_list:
            return request.query_params.getlist(name) or _MISSING
        return request.query_params.get(name, _MISSING)
    try:
        body = await request.body()
    except ClientDisconnect:
        raise bad_parameter((name, "has not come whole")) from None
    try:
        return codec.loads(body) if body else _MISSING
    except ValueError:
        raise bad_parameter((name, "is not JSON")) from None


def _parts(annotation: Any) -> list[Any]:  # noqa: ANN401 -- any annotation
    """Return an annotation, what it is a union of, and what it is annotated with."""
    parts = [annotation, *get_args(annotation)]
    return [*parts, *get_args(parts[1])] if len(parts) > 1 else parts


def _hint(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name[:_NAME].lower(), allowed, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else "."
    names = f"Allowed: {', '.join(allowed)}." if allowed else "This route has no parameters."
    return f"unknown parameter{hint} {names}"
