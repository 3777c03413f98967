"""What an evaluator makes of configurations, without a study."""

from deepbore.data.trial import Trial


def evaluated(evaluator, *params):
    """The outcomes of configurations, in their order."""
    try:
        for row, each in enumerate(params):
            evaluator.submit(Trial(row, each))
        found = {}
        while evaluator.outstanding:
            found |= {one.trial.id: one.outcome for one in evaluator.collect()}
    finally:
        evaluator.close()
    return [found[row] for row in range(len(params))]
