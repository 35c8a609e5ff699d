"""DDP under two ranks: see cases_ddp.py."""

import pytest
from ranks import case_names


@pytest.mark.parametrize("case", case_names("cases_ddp.py"))
def test_ddp(ranks, case: str) -> None:
    ranks.run("cases_ddp.py", case)
