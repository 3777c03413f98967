"""Proposals stay on the device, whatever torch's modes: transfers counted, and fake devices that refuse to mix."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.overrides import TorchFunctionMode

from cases import ACQUISITIONS
from deepbore import (
    DeepEnsemble,
    ExpectedImprovementBelow,
    FourierLogistic,
    KernelPLS,
    Study,
    Training,
    candidates as searches,
    minimize,
)
from deepbore.acquisition import LogExpectedImprovement, UpperConfidenceBound, default_acquisition
from deepbore.candidates import Search
from deepbore.candidates.batches import in_radii, log_penalty
from deepbore.candidates.local import adam_ascent
from deepbore.candidates.papers.svgd import LBFGS, Adadelta, stein_direction, tail_weights
from deepbore.classifiers.feasibility import Feasibility
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MembersPosterior
from deepbore.compute import arrays
from deepbore.compute.devices import as_device
from deepbore.compute.torch_state import clean_torch_state
from deepbore.errors import SettingError
from deepbore.loop.engine import Engine
from deepbore.loop.quiet import quiet
from deepbore.space.features import Coordinates, squared_distances
from deepbore.testing import TOY_SPACES, fit, toy_data
from objectives import bowl
from plane import PLANE

HEADS = {
    "KernelPLS": KernelPLS,
    "DeepEnsemble": lambda: DeepEnsemble(training=Training(steps=30)),
    "FourierLogistic": FourierLogistic,
}

SPACE = TOY_SPACES["continuous"]

D = len(SPACE)

TO_PYTHON = ("cpu", "tolist", "item", "numpy", "__float__", "__bool__", "__int__", "__index__", "__array__")


class Transfers(TorchFunctionMode):
    """Counts the entries of tensors that leave their device for the CPU, or for Python."""

    def __init__(self):
        super().__init__()
        self.entries = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in TO_PYTHON and isinstance(args[0], torch.Tensor):
            self.entries[name] += args[0].numel()
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module", params=HEADS)
def trained(request):
    data = toy_data(SPACE, 40)
    return fit(HEADS[request.param](), data, epochs=2), data.observations


@pytest.fixture
def accelerated(monkeypatch):
    """The arithmetic of an accelerator on the CPU, where NumPy would compute otherwise; chunks stay small."""
    monkeypatch.setattr(arrays, "NATIVE", None)


def entries(candidates, trained, q):
    classifier, observations = trained
    search = Search(
        default_acquisition(classifier).resolved(classifier), classifier, observations, torch.Generator().manual_seed(0)
    )
    with Transfers() as transfers:
        candidates.propose(search, q)
    return transfers.entries


# --- what leaves the device ------------------------------------------------------------------------------------------

SEARCHES = {
    "RandomSearch": searches.RandomSearch,
    "LocalSearch": lambda n: searches.LocalSearch(n, n // 2, focus=0),
    "focused LocalSearch": lambda n: searches.LocalSearch(n, focus=1),
    "EpsilonGreedy": lambda n: searches.EpsilonGreedy(searches.RandomSearch(n), epsilon=0),
    "GreedyBatch": lambda n: searches.GreedyBatch(searches.LocalSearch(n, n // 2, focus=0)),
    "ThompsonBatch": lambda n: searches.ThompsonBatch(searches.LocalSearch(n, n // 2, focus=0)),
    "SVGDCandidates": lambda n: searches.SVGDCandidates(samples=n, neighbours=n, steps=5, sweeps=2),
}

SHORTLIST = {"GreedyBatch", "ThompsonBatch"}  # choose among the first 1000 new configurations of another ranking

LOOKS = 10 * D  # entries a row takes to be looked at: moved once; each column is decoded twice, in some steps


@pytest.mark.usefixtures("accelerated")
@pytest.mark.parametrize("q", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("name", SEARCHES)
def test_only_what_the_walk_looks_at_leaves_the_device(trained, name, q):
    few, many = (sum(entries(SEARCHES[name](n), trained, q).values()) for n in (1500, 6000))
    assert few == many
    rows = 1000 if name in SHORTLIST and not (name == "GreedyBatch" and q == 1) else 0
    assert few <= LOOKS * (rows + max(16, q)) + 10


@pytest.mark.usefixtures("accelerated")
@pytest.mark.parametrize("name", ["MultiStartLBFGS", "BoTorchBatch"])
def test_of_scipys_steps_only_the_climbers_leave_the_device(trained, name):
    def moved(n):
        make = {"MultiStartLBFGS": searches.MultiStartLBFGS, "BoTorchBatch": searches.BoTorchBatch}[name]
        return sum(entries(make(restarts=2, samples=n, iterations=5), trained, 2).values())

    assert max(moved(500), moved(4000)) <= LOOKS * 16 + 2 * (10 + 20 * 2 * 2 * (D + 2))  # points and gradients


# --- devices do not mix ----------------------------------------------------------------------------------------------


def fakes_a_gpu():
    """Whether this torch makes fake tensors of a GPU that is not there; older ones ask the driver."""
    try:
        with FakeTensorMode() as mode:
            return torch.arange(2, device="cuda").device == mode.from_tensor(torch.zeros(2)).to("cuda").device
    except RuntimeError:
        return False


FAKES_A_GPU = pytest.mark.skipif(not fakes_a_gpu(), reason="this torch fakes no GPU that is not there")


@contextmanager
def fake_device():
    """Tensors on "cuda" that have shapes and devices but no entries: whatever mixes them with the CPU raises."""
    with FakeTensorMode():
        yield lambda *shape: torch.empty(shape, dtype=torch.float64, device="cuda")


def test_a_fake_device_refuses_the_cpu():
    with fake_device() as there, pytest.raises(RuntimeError, match="device"):
        there(3) + torch.zeros(3)


@FAKES_A_GPU
def test_the_arithmetic_of_batches_stays_on_one_device():
    with fake_device() as there:
        x = there(6, 2)
        made = [
            stein_direction(x, there(6, 2), there(6, 6)),
            tail_weights(there(6), 0.5),
            log_penalty(in_radii(x, there(1, 2), there(1))),
            log_penalty(in_radii(x, there(4, 2), there(4))),
            squared_distances(x, there(3, 2)),
        ]
        for stepper in (Adadelta(0.1), LBFGS(0.1)):
            made += [stepper(x, there(6, 2)) for _ in range(3)]
    assert {tensor.device.type for tensor in made} == {"cuda"}


def test_climbing_stays_on_one_device():
    starts, upper = (torch.empty(shape, dtype=torch.float64, device="meta") for shape in ((6, 2), (2,)))
    tops = adam_ascent(lambda points: -2 * points, starts, [0], upper, steps=3)  # autograd asks for a real GPU
    assert tops.device.type == "meta"


@pytest.mark.parametrize("name", ["ClassProbability", "UpperConfidenceBound", "QuantileBound", "ExpectedProbability"])
def test_acquisitions_stay_on_the_posteriors_device(name):
    acquisition = {**ACQUISITIONS, "UpperConfidenceBound": lambda: UpperConfidenceBound(1.0)}[name]()
    with fake_device() as there:
        posterior = MembersPosterior(there(3, 7), Link.LOGIT)
        assert acquisition(posterior, there()).device.type == "cuda"
        assert acquisition.log_density(posterior, there()).device.type == "cuda"


def test_improvement_stays_on_the_posteriors_device():
    with fake_device() as there:
        posterior = MembersPosterior(there(3, 7), Link.IDENTITY)
        assert LogExpectedImprovement()(posterior, there()).device.type == "cuda"


def kernel_model(kind, data):
    """A fitted `KernelPLS`, as one of the models that it can be."""
    model = fit(KernelPLS(noisy=kind == "noisy"), data, epochs=1)
    model.prefers_additive = kind == "additive"
    if kind == "noisy":
        model.theta[-1] = 0.0
        model._update_noiseless()
    assert (model.posterior(data.observations.points).noiseless is not None) == (kind == "noisy")
    return model


@pytest.mark.parametrize("acquisition", [LogExpectedImprovement(), UpperConfidenceBound(1.0)])
@pytest.mark.parametrize("kind", ["usual", "additive", "noisy"])
@pytest.mark.parametrize("name", ["continuous", "mixed"])
def test_what_kernels_predict_and_its_gradients_stay_on_one_device(name, kind, acquisition):
    model = kernel_model(kind, toy_data(TOY_SPACES[name], 30)).to("meta")  # where nothing can be read, or waited for
    points = torch.empty(6, len(TOY_SPACES[name]), dtype=torch.float64, device="meta", requires_grad=True)
    values = acquisition(model.posterior(points), model.best_label)
    (gradient,) = torch.autograd.grad(values.sum(), points)
    assert (values.device.type, gradient.device.type) == ("meta", "meta")
    assert (values.shape, gradient.shape) == ((6,), points.shape)


def test_the_chance_that_constraints_are_kept_stays_on_one_device():
    batch, feasibility = toy_data(SPACE, 30).batch(), Feasibility()
    constraints = batch.points[:, :2] - 2 / 3
    feasibility.fit(replace(batch, constraints=constraints), SPACE, torch.Generator().manual_seed(0))
    for model in feasibility._models.values():
        model.to("meta")
    feasibility._prior = feasibility._prior.to("meta")
    points = torch.empty(6, D, dtype=torch.float64, device="meta", requires_grad=True)
    values = feasibility.log_probability(points)
    (gradient,) = torch.autograd.grad(values.sum(), points)
    assert (values.device.type, gradient.device.type) == ("meta", "meta")


@pytest.mark.parametrize("acquisition", [LogExpectedImprovement(), UpperConfidenceBound(1.0)])
@pytest.mark.parametrize("kind", ["usual", "additive", "noisy"])
def test_the_arithmetic_of_accelerators_gives_the_same_values_and_gradients(monkeypatch, kind, acquisition):
    model, points = kernel_model(kind, toy_data(SPACE, 30)), SPACE.points.sobol(50, seed=1)

    def found():
        moved = points.clone().requires_grad_(True)
        values = acquisition(model.posterior(moved), model.best_label)
        return values.detach(), torch.autograd.grad(values.sum(), moved)[0]

    usual = found()
    monkeypatch.setattr(arrays, "NATIVE", None)
    for one, other in zip(usual, found(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@FAKES_A_GPU
@pytest.mark.parametrize("name", TOY_SPACES)
def test_coordinates_move_with_their_buffers(name):
    space = TOY_SPACES[name]
    place = Coordinates(space.points)
    with FakeTensorMode() as mode:
        for key, buffer in list(place._buffers.items()):
            place._buffers[key] = mode.from_tensor(buffer).to("cuda") if buffer is not None else None
        assert place(torch.empty(5, len(space), dtype=torch.float64, device="cuda")).device.type == "cuda"


# --- torch's modes ---------------------------------------------------------------------------------------------------


@contextmanager
def double_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


MODES = {
    "inference_mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64": double_by_default,
    "device": lambda: torch.device("meta"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", ["KernelPLS", "DeepEnsemble"])
def test_proposals_are_the_same_in_any_mode(mode, head):
    def asked(classifier):
        study = Study(SPACE, seed=0, n_initial=5, classifier=classifier)
        for trial in study.ask(6):
            study.tell(trial, trial.params["x"] ** 2 + trial.params["y"])
        return [trial.params for _ in range(2) for trial in study.ask(2)]

    usual, classifier = asked(HEADS[head]()), HEADS[head]()
    with MODES[mode]():
        assert asked(classifier) == usual


@pytest.mark.parametrize("mode", MODES)
def test_the_callers_mode_is_restored(mode):
    def state():
        return (
            torch.is_inference_mode_enabled(),
            torch.is_grad_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.get_default_dtype(),
            torch.empty(0).device,
        )

    usual = state()
    with MODES[mode]():
        before = state()
        assert before != usual
        with clean_torch_state():
            assert state() == usual
        with pytest.raises(KeyError), clean_torch_state():
            raise KeyError
        assert state() == before
    assert state() == usual


class MakingTensorsElsewhere(SingleDeviceStrategy):
    """Makes tensors on another device while the module is configured, as Lightning does for a GPU."""

    @contextmanager
    def tensor_init_context(self, empty_init=None):
        with torch.device("meta"):
            yield


@pytest.mark.parametrize("head", HEADS)
def test_a_trainers_device_is_not_where_the_parameters_are_made(head):
    with quiet():
        elsewhere = MakingTensorsElsewhere("cpu")
        trainer = Trainer(strategy=elsewhere, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    study, usual = (Study(SPACE, seed=0, n_initial=5, classifier=HEADS[head]()) for _ in range(2))
    for each, settings in ((study, {"trainer": trainer}), (usual, {})):
        each.optimize(lambda params: params["x"] ** 2 + params["y"], 7, **settings)
    assert [trial.params for trial in study.trials] == [trial.params for trial in usual.trials]


def on_fake_cuda(mode, module):
    """Makes a module what it is on a GPU: the parts of its state, without their entries."""
    for each in module.modules():
        for kept in (each._buffers, each._parameters):
            kept.update({name: mode.from_tensor(t).to("cuda") for name, t in kept.items() if t is not None})
    module._device = torch.device("cuda", 0)  # as Lightning notes it


@FAKES_A_GPU
@pytest.mark.parametrize("ask", ["forecast", "rule"])
def test_what_is_asked_of_proposals_finds_them_on_the_cpu(ask):
    study = Study(SPACE, seed=0)
    study.add(*told_rows())
    study.fit(1)
    state, points = study._state, torch.empty(2, D, dtype=torch.float64)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:  # numbers of columns may stay on the CPU
        on_fake_cuda(mode, study.classifier)
        points = mode.from_tensor(points)  # as `Candidates.propose` gives them
        if ask == "forecast":
            assert Engine(state).expected_labels(points).device.type == "cuda"
        else:
            with pytest.raises(DataDependentOutputException):  # it gets as far as the comparison
                ExpectedImprovementBelow().predicts_little_gain(state, points)


def told_rows():
    """Columns and values of twenty random configurations."""
    rows = SPACE.decode(SPACE.points.sobol(20, seed=0))
    return {name: [row[name] for row in rows] for name in SPACE.names}, [float(i) for i in range(20)]


def test_the_objective_has_all_threads_and_gradients():
    threads = torch.get_num_threads()
    seen = []

    def objective(params):
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))
        return bowl(params)

    minimize(objective, PLANE, n_trials=13, seed=0)
    assert set(seen) == {(threads, True)}
    assert torch.get_num_threads() == threads


def test_results_do_not_depend_on_the_number_of_threads():
    threads = torch.get_num_threads()
    values = []
    for count in (1, 2):
        torch.set_num_threads(count)
        values.append(minimize(bowl, PLANE, n_trials=14, seed=0).values.tolist())
    torch.set_num_threads(threads)
    assert values[0] == values[1]


@pytest.fixture
def on_apple(monkeypatch):
    """As on a computer of Apple's: torch has a GPU, and it has no float64."""
    own = torch.empty

    def empty(*size, dtype=None, device=None, **settings):
        if str(device) != "mps":
            return own(*size, dtype=dtype, device=device, **settings)
        if dtype == torch.float64:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
            )
        return own(*size, dtype=dtype, **settings)

    monkeypatch.setattr(torch, "empty", empty)
    apple = SimpleNamespace(is_available=lambda: True, current_accelerator=lambda: torch.device("mps"))
    monkeypatch.setattr(torch, "accelerator", apple, raising=False)  # torch 2.5 has none


@pytest.mark.usefixtures("on_apple")
def test_a_gpu_without_float64_is_not_taken_by_itself_and_refused_by_name():
    assert as_device("auto") == torch.device("cpu")
    assert minimize(bowl, PLANE, 3, device="auto", progress=False).study.observations.points.device.type == "cpu"
    for name in ("mps", torch.device("mps")):
        with pytest.raises(SettingError, match=r'float64, which .* but got "mps": Cannot convert .* Give "cpu"'):
            minimize(bowl, PLANE, 3, device=name, progress=False)


@pytest.mark.usefixtures("on_apple")
def test_a_trainer_on_a_gpu_without_float64_is_refused_before_anything_is_evaluated():
    trainer, seen = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False), []
    trainer.strategy._root_device = torch.device("mps")
    with pytest.raises(SettingError, match="float64"):
        Study(PLANE).optimize(seen.append, 3, trainer=trainer, progress=False)
    assert seen == []


def test_auto_is_cuda_or_the_cpu_where_torch_knows_no_accelerators(monkeypatch):
    monkeypatch.delattr(torch, "accelerator", raising=False)  # before 2.6
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert as_device("auto").type == expected
