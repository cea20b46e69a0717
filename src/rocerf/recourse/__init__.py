"""The cheapest change that keeps a promise."""
