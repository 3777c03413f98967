"""Interrupts at a line of the code, wherever that line is."""

import sys


def interrupted(act, at, files, gap=None):
    """Lets the n-th line that an act runs in some files raise KeyboardInterrupt; whether it came to that.

    Args:
        act: what is done.
        at: n, counted from 1.
        files: ends of the paths of these files.
        gap: after how many more lines, of the clearing up, there is a second interrupt; None for none.
    """
    left, hits = at, 0

    def trace(frame, event, arg):
        nonlocal left, hits
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                hits += 1
                if gap is not None and hits == 1:
                    left = gap
                    sys.settrace(trace)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
