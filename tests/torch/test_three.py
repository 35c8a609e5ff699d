"""Three ranks: see cases_three.py."""

import pytest
from ranks import Ranks, case_names


@pytest.fixture(scope="module")
def trio():
    ranks = Ranks(3)
    yield ranks
    ranks.close()


@pytest.mark.parametrize("case", case_names("cases_three.py"))
def test_three(trio, case: str) -> None:
    trio.run("cases_three.py", case, dies=(1,) if case.startswith("killed") else ())
