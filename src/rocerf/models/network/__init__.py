"""Neural networks: many trained at once, their scores, slopes and curvature. Torch is imported only here."""
