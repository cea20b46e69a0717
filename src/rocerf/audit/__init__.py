"""What deletions do to recourses already given: recheck, and how many deletions a point survives."""
