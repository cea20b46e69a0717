"""What was learned from, and what may change."""
