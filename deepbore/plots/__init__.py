"""Pictures of a run; each takes a study and returns a matplotlib figure. What shows the classifier needs it trained:
`ask` and `optimize` do that, and so does `Study.fit`, for a study taken up from its journal."""

import lazy_loader

# each is imported when it is first used: those that show no classifier need no torch; __init__.pyi lists them
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
