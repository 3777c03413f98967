"""The loop: relabel, train, propose, evaluate, record."""

from deepbore.lazy import attach

# each name is imported when it is first used, Lightning with what needs it; __init__.pyi lists them
__getattr__, __dir__, __all__ = attach(__name__, __file__)
