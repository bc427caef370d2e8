"""Whatever is asked of the routes, there is no 500, and answers are as the document says.

Collecting these tests makes their first requests, which takes seconds of each worker.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from schemas.records import CompactBoundary
from streams.serve.api.guard import STREAM
from tests.serve.kit import GrowingViews, api_over, sample_records
from tests.serve.text_kit import OneConversation, kept_conversation

pytestmark = pytest.mark.extended

RECORDS = sample_records()
SESSION = next(r.data.session_id for r in RECORDS if isinstance(r.data, CompactBoundary))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


def _app() -> Any:
    views = GrowingViews()
    views.add(*RECORDS)
    conversations = OneConversation(SESSION, kept_conversation())
    return api_over(views, only_here=False, conversations=conversations).app


# The feed never ends; tests/serve/test_stream.py asks it.
schema = schemathesis.openapi.from_asgi("/openapi.json", _app()).exclude(path=STREAM)


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_request_gets_a_valid_response(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)


@schema.include(path_regex=r"\{").parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_session_request_gets_a_valid_response(case: Any) -> None:
    case.path_parameters = dict.fromkeys(case.path_parameters, SESSION)
    case.call_and_validate(checks=CHECKS)
