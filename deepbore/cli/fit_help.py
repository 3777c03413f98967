"""What `deepbore fit --help` prints, apart from the command itself, which takes seconds to import."""

import re

HELP = """deepbore fit: an optimisation is one Lightning fit, an iteration is an epoch

  deepbore fit --config configs/hpolib_protein.yaml
  deepbore fit --config configs/hpolib_protein.yaml --loop.n_trials 200 --loop.seed 1 --run runs/longer

  --config FILE            YAML with the settings below; may be given more than once
  --run DIR                where the run is kept: config.yaml, journal.jsonl, journal.jsonl.ckpt, metrics.csv
                           (default: runs/ and the problem's name and a number)
  --resume RUN             go on with a run that was interrupted, up to loop.n_trials in total
  --warm_start FILE        earlier results, a CSV file: a column for each parameter and one named value
  --earlier_tasks.NAME FILE  the same of another task, of whatever scale, as many as there are
  --problem CLASS          what to optimise, as class_path and init_args: deepbore.problems.HPOLib, Digits, ..., or
                           FunctionProblem for your own function
  --loop.n_trials N        evaluations in all (default 100), earlier results not counted; --n_trials is the same, and so
                           are --seed, --workers, --timeout, --labels, ... of --loop.* and --data.*
  --loop.n_initial N       results before the classifier is asked (default 10), earlier ones counted
  --loop.batch_size Q      trials proposed in one iteration (default 1)
  --loop.seed N            of everything random in the run (default 0)
  --loop.timeout S         seconds, the initial design included, after which no further trial begins (default: no limit)
  --loop.cost_limit C      what all evaluations may cost together: seconds, or what outcomes say (default: no limit)
  --loop.max_failures N    the run ends with an error if the first N evaluations have all failed (default 20)
  --loop.budget SETTINGS   cheap fidelities: '{unit: epochs, low: 1, high: 81, factor: 3}'; the problem takes the trial
  --loop.pruner CLASS      ends trials early by what they report: MedianPruner, SuccessiveHalvingPruner, ...
  --loop.acquisition CLASS --loop.candidates CLASS
  --loop.strategy CLASS    what proposes, with its own models, in place of --classifier and these two
  --evaluation.workers N   evaluations at the same time, each in a process of its own (default 1, in this process)
  --evaluation.timeout S   seconds that one may take before it counts as failed (default: no limit)
  --evaluation.retries N   how many times a failed one is tried again (default 0)
  --evaluation.devices GPUS  such as [0, 1, 2, 3]: each worker sees one of these GPUs alone (default: all)
  --evaluator CLASS        an evaluator of your own, in place of --evaluation.*
  --classifier CLASS       KernelPLS (default), DeepPLS, DeepEnsemble, MLPClassifier, ...; --model is the same
  --classifier.optimizer CLASS --classifier.optimizer.lr RATE  of a network; so, too, lr_scheduler, loss, activation
  --data.labels CLASS      ValueGradedLabels, ThresholdLabels, ... (default: what suits the model)
  --trainer.*              settings of Lightning's Trainer: accelerator, devices, max_time, logger, callbacks, ...

  --print_config           the whole configuration that would run
  --help-all               every setting, with its type and default
"""

OPTIONS = re.findall(r"--([\w.]*\w)", HELP)
