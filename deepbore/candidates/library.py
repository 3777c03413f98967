"""`LibrarySearch`: every level of a library, a few at a time."""

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, sorted_by_value
from deepbore.candidates.local import RandomSearch
from deepbore.classifiers.base import Classifier
from deepbore.data.observations import Status
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.validation import whole

FEWEST = 1000  # points that are kept, from which a wrapped search may choose a batch; or four times those asked for


class LibrarySearch(Candidates):
    """The best levels of a library that are new: all are scored, a few at a time, and the best are kept.

    So neither features nor scores of a library are in memory as a whole, and time is linear in its size. Several ranks
    score their shares, and exchange the best alone.

    Beside other parameters each level is scored with random values of these, or with those of one of the best trials;
    then the others of the best points change, at random, for a few rounds. Where there is no library, or it is fixed,
    points are random.

    Args:
        chunk: levels that are scored at once, >= 1: memory grows with it.
        rounds: of changes in other parameters, >= 0.
        centres: best trials whose other parameters are tried, >= 1.

    Raises:
        SettingError: for a number outside its range; for a space with several libraries.
    """

    def __init__(self, chunk: int = 4096, rounds: int = 10, centres: int = 10):
        whole(1, chunk=chunk, centres=centres)
        whole(0, rounds=rounds)
        self.chunk, self.rounds, self.centres = chunk, rounds, centres

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        super().check(space, classifier)
        libraries = [name for name, parameter in space.parameters.items() if parameter.is_library]
        if len(libraries) > 1:
            raise SettingError(
                f"LibrarySearch goes through one library, but the space has {len(libraries)}: {libraries}. Join them "
                "to one of all pairs, or use LocalSearch."
            )

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        if not search.space.points.library_columns:
            return RandomSearch(self.chunk).ranked(search, q)
        best = self._scanned(own, max(FEWEST, 4 * q))
        if len(search.space.points.free_columns) > 1:
            for _ in range(self.rounds):
                best = self._changed(own, *best)
        return search.gather_ranked(*own.sorted(*best))[0]

    def _scanned(self, own: Search, most: int) -> tuple[Tensor, Tensor]:
        """The best points of this rank's share, one for each level, at most `most` of them, and their values."""
        (column,) = own.space.points.library_columns
        levels = own.space.points.structure.of_column[column].levels or 0
        seen = self._seen(own, column)
        best = torch.zeros(0, len(own.space), dtype=torch.float64, device=own.device), torch.zeros(0, device=own.device)
        for start in own.ranks.part(torch.arange(0, levels, self.chunk)).tolist():
            chunk = torch.arange(start, min(start + self.chunk, levels))
            chunk = chunk[~torch.isin(chunk, seen)] if len(seen) else chunk
            points = own.keep_permitted(self._points(own, chunk.to(own.device), column))
            best = first_of(points, self._values(own, points), *best, most)
        return best

    def _points(self, own: Search, levels: Tensor, column: int) -> Tensor:
        """A point with each of some levels."""
        if len(own.space) == 1:
            return levels[:, None].double()
        points = own.sample(len(levels))
        known = own.points(own.observations.centres.best_rows(self.centres))
        if len(known):
            draws = torch.rand(2, len(levels), generator=own.stream, device=own.stream.device).to(own.device)
            row = (draws[0] * len(known)).long().clamp(max=len(known) - 1)
            points = torch.where(draws[1, :, None] < 0.5, known[row], points)
        points[:, column] = levels.to(points)
        return own.space.points.snap(points)

    def _changed(self, own: Search, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The points with a change in other parameters where it is better, and their values."""
        (column,) = own.space.points.library_columns
        other = own.space.points.neighbour_of_each(points, own.stream)
        other[:, column] = points[:, column]
        other = own.space.points.snap(other)
        reached = self._values(own, other)
        better = (reached > values) & own.space.points.permitted(other)
        return torch.where(better[:, None], other, points), torch.where(better, reached, values)

    def _seen(self, own: Search, column: int) -> Tensor:
        """The levels that are known already, if there is nothing beside the library."""
        if len(own.space) > 1:
            return torch.zeros(0)
        known = own.observations.points[own.observations.status != Status.WITHDRAWN]
        known = known if own.chosen is None else torch.cat([known, own.chosen.to(known)])
        return known[:, column].round().long().cpu()

    @torch.no_grad()
    def _values(self, own: Search, points: Tensor) -> Tensor:
        return torch.cat([own.value(part) for part in points.split(self.chunk)]) if len(points) else points[:, 0]


def first_of(points: Tensor, values: Tensor, more: Tensor, their: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The best of two sets of points with their values, best first, at most `most`."""
    points, values = sorted_by_value(torch.cat([more, points]), torch.cat([their.to(values), values]))
    return points[:most], values[:most]
