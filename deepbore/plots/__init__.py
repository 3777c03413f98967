"""Pictures of a run; each takes a study and returns a matplotlib figure. What shows the classifier needs it trained:
`ask` and `optimize` do that, and so does `Study.fit`, for a study taken up from its journal."""

from deepbore.lazy import attach

# each is imported when it is first used: those that show no classifier need no torch; __init__.pyi lists them
__getattr__, __dir__, __all__ = attach(__name__, __file__)
