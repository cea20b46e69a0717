"""Letters to people: what to change, what was promised, until when; written from checked points."""
