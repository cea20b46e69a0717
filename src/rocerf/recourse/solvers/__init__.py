"""Solvers: the cheapest point at which a promise holds, by cuts, slopes or values alone."""
