"""Linear work is distinguished from quadratic work, on whatever machine this is."""

from tests.linear_time import is_linear


def test_linear_work_is_linear_and_quadratic_work_is_not() -> None:
    assert is_linear(lambda size: sum(range(size)), 400_000)
    assert not is_linear(lambda size: [sum(range(size)) for _ in range(size)], 2_000)
