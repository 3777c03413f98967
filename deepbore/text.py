"""Text from elsewhere, made fit to be shown."""


def visible(text: str, keep: str = "") -> str:
    r"""A text with all that is not printed, as control characters are, written as Python writes it.

    A name in a received file can neither command the terminal, nor turn the order of letters, nor begin a line.

    Args:
        text: any text.
        keep: characters that may stay, such as line ends.

    Example:
        >>> visible("lr\x1b[2J"), visible("3\u202e4")
        ('lr\\x1b[2J', '3\\u202e4')
    """
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)
