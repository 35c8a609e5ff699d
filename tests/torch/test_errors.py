"""Wrong calls, mismatches and failures under two ranks: see cases_errors.py."""

import pytest
from ranks import case_names

DIES = {"killed_rank": (1,), "killed_rank_in_all_reduce": (1,)}


@pytest.mark.parametrize("case", case_names("cases_errors.py"))
def test_errors(ranks, case: str) -> None:
    ranks.run("cases_errors.py", case, dies=DIES.get(case, ()))
