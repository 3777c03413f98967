"""`Picture`: a figure that a notebook shows as it is. Needs matplotlib."""

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure of matplotlib, outside of pyplot's state, that a notebook shows without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:  # which IPython asks for
        written = io.BytesIO()
        self.savefig(written, format="png")
        return written.getvalue()
