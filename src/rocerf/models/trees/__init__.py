"""Tree ensembles in one form, whoever grew them."""
