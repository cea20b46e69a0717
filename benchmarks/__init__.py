"""Measurements. Ratios are taken within one run, because machines are noisy; run with ``make bench``."""
