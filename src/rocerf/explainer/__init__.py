"""Rocerf, the conductor: people in, recourses with a stated promise out."""
