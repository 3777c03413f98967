"""`TrialLog`: the trials of a run in the loggers of its Trainer, whatever these are.

| logger | what it gets |
|---|---|
| TensorBoardLogger | a run for each trial, below trials/: parameters and value (HParams), curve |
| MLFlowLogger | a child run for each trial: parameters, value, curve, start, end and status |
| WandbLogger | a run for each trial in the group of the logger's run: parameters, value, curve |
| CSVLogger | a row for each trial: parameters, value, status and duration; and one for each reported value |
| any other | the numbers among these |
"""
