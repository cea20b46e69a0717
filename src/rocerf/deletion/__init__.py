"""What deleting rows does to a model."""
