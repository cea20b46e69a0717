"""What is said to people, as keys with parameters, and the languages in which it can be said."""

from rocerf.words.language import Language, exact, known_languages, language_named, register_language
from rocerf.words.said import Said

__all__ = ["Language", "Said", "exact", "known_languages", "language_named", "register_language"]
