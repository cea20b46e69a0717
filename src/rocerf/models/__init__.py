"""Fitted classifiers together with the objective they minimise."""
