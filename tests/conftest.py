"""Settings of the random tests: no deadline (shared machines are noisy), the same examples in every run, so that a red
suite is red again; ``--hypothesis-profile=explore`` draws new ones, and prints how to repeat a failure. And a fixture
for lock files."""

import pytest
from hypothesis import HealthCheck, settings

from planner import api

settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("arena", settings.get_profile("explore"), derandomize=True)
settings.load_profile("arena")


@pytest.fixture
def no_solver(monkeypatch):
    """From now on, nothing may be solved."""

    def switch_off():
        for name in ("solve", "solve_in_banks"):
            monkeypatch.setattr(api, name, lambda *a: pytest.fail("it was solved"))

    return switch_off
