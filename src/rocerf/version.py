"""The version of this package, read by the build and written into results."""

__version__ = "0.2.0"
