"""The page of a run: one file of HTML that needs nothing else, drawn by plotly.js, which stands in it."""
