"""The master problem: the cheapest point that obeys the rules and some cuts."""
