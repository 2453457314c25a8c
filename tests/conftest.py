"""Settings of the random tests: no deadline (shared machines are noisy); a failure prints how to repeat it."""

from hypothesis import HealthCheck, settings

settings.register_profile("arena", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("arena")
