"""Names of headers that are not UTF-8: other producers may write any bytes."""

import os
import subprocess
import sys
from itertools import product

import pytest

from streams.ports import LogRecord
from tests.codec.batches_kit import ForeignName, batch_of
from tests.edge.fetching_kit import START_MS, Log, read


@pytest.mark.parametrize(("codec", "most"), [*product(range(5), (None, 1, 2))])
def test_a_name_of_a_header_that_is_not_utf8_stops_no_one(codec: int, most: int | None) -> None:
    log = Log()
    written = [
        LogRecord(offset, START_MS, b"key", b"value" * 40, headers)
        for offset, headers in enumerate(
            [
                (("fine", b"1"),),
                ((ForeignName(), b"2"), ("fine", b"3")),
                (),
                ((ForeignName(), None),),
            ]
        )
    ]
    log.append(batch_of(written, codec=codec), 0, 4)
    records = read(log, 0, most)
    foreign = "\ufffd\ufffdname"
    names = [(("fine", b"1"),), ((foreign, b"2"), ("fine", b"3")), (), ((foreign, None),)]
    assert records == [
        one._replace(headers=headers) for one, headers in zip(written, names, strict=True)
    ]


def test_without_aiokafkas_compiled_parts_it_stops_no_one_either() -> None:
    record = LogRecord(0, START_MS, b"key", b"value", ((ForeignName(), b"1"),))
    program = """if True:
        import sys
        from streams.edge.kafka.fetched_bytes import FetchedBytes
        from aiokafka.record import default_records
        assert default_records.DefaultRecordBatch is default_records._DefaultRecordBatchPy
        print([each.headers for each in FetchedBytes(sys.stdin.buffer.read()).next_batch()])
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=batch_of([record]),
        capture_output=True,
        check=False,
        env={**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1", "PYTHONIOENCODING": "utf-8"},
    )
    assert (done.stdout.decode(), done.returncode) == ("[[('\ufffd\ufffdname', b'1')]]\n", 0), done
