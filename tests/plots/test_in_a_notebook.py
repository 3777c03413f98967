"""The page and the pictures of a run as the output of a notebook's cell."""

import html
import pickle

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


def test_a_notebook_shows_a_picture_without_being_asked_to():
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0)
    study.tell(*study.ask(), 1.0)
    figure = plots.history(study)
    assert figure._repr_png_().startswith(b"\x89PNG")  # which IPython asks for
    assert pickle.loads(pickle.dumps(figure))._repr_png_().startswith(b"\x89PNG")
