"""The methods that scripts/benchmark.py compares, each as a peer: ask, tell, recommend.

    base              Peer: what all share; PointPeer: for methods that work on points of the unit cube
    methods           the table of names, and `make`, which makes a peer from its name
    deepbore_methods  deepbore with its defaults, other heads, other batches, and what the next three bring
    papers            the papers' recipes: configs/papers
    searches          the papers' classifiers with other searches of the acquisition's maximum
    variants          what the default was chosen among: variants of it, and prototypes that lost
    chance            random search and a Sobol sequence
    evolution         differential evolution and regularised evolution
    hyperopt_tpe      TPE of HyperOpt
    optuna_samplers   TPE, GP and CMA-ES of Optuna
    cma_es            CMA-ES of the package cma with restarts
    density_ratio     BORE and LFBO with trees and BORE with a network, as published
    botorch_gp        GP with LogEI, or qLogNEI for noise and batches
    gaussian_process  GP with EI, UCB, q-EI, or local penalisation, as the papers compare with
    turbo             TuRBO-1, as BoTorch's tutorial describes it
    smac_facade       SMAC3
    hebo_optimizer    HEBO
    by_budget         for scripts/budgets.py: methods that spend budgets
    by_objectives, mbore   for scripts/trade_offs.py: methods for several objectives, one of them MBORE
    venvs, process, serve  packages that fight with deepbore's: a virtual environment and a process of their own

All peers minimise. README.md beside this file says how they are installed and how each is set.
"""
