"""Logistic regression: objective, fit, many retrained, files."""
