"""The page of a run as the output of a notebook's cell."""

import html

from deepbore import Real, SearchSpace, Study, plots


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    study = Study(SearchSpace({'"><script>x</script>': Real(0, 1)}), seed=0)
    page = plots.report(study)
    frame = page._repr_html_()
    start, end = '<iframe srcdoc="', '" style="width: 100%; height: 900px; border: 0"></iframe>'
    assert frame.startswith(start)
    assert frame.endswith(end)
    assert "<script" not in frame
    assert html.unescape(frame[len(start) : -len(end)]) == page
