"""`RestoredStudy`: a study that was loaded goes on from where its journal ended, however it was looked at."""

from deepbore.classifiers import Classifier
from deepbore.data.replay import History
from deepbore.loop.state import restore
from deepbore.study.opening import Opened
from deepbore.study.view import StudyView


class RestoredStudy(StudyView):
    """A study whose state may still have to be brought where its journal ended, before anything changes it."""

    _history: History | None  # of what was loaded, until it is restored
    _is_as_loaded: bool  # nothing has been proposed since
    _unlearned: Classifier | None  # what it was then, before a look at it made the classifier learn

    def _take(self, run: Opened) -> None:
        """Has the state of a run, as it was opened."""
        self._state, self._history = run
        self._is_as_loaded, self._unlearned = self._history is not None, None

    def _restore(self) -> None:
        """Brings the state where the journal ended."""
        if self._history is not None:
            self._unlearn()  # a snapshot of the design has no weights
            restore(self._state, self._history)
            self._history = None  # now: a call that is interrupted leaves the next one to do it

    def _go_on(self) -> None:
        """Brings the state where the journal ended, whatever looks have taught the classifier since."""
        self._restore()
        self._unlearn()
        self._is_as_loaded = False

    def _keep_unlearned(self) -> None:
        """Before a look makes the classifier learn: what was loaded is what the study goes on from."""
        if self._is_as_loaded and self._unlearned is None:
            self._unlearned = self._state.copy_of_classifier()

    def _unlearn(self) -> None:
        """Takes back what looks have taught the classifier."""
        if self._unlearned is not None:
            self.classifier.become(self._unlearned)
            self._unlearned = None
