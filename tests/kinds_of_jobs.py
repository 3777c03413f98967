"""The environment of the second of four processes, in jobs of clusters and launchers."""

JOBS = {
    "SLURM": {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": "tune",
        "SLURM_NTASKS": "4",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": "node7",
    },
    "torchrun": {
        "TORCHELASTIC_RUN_ID": "7",
        "GROUP_RANK": "0",
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    },
    "Kubeflow": {
        "KUBERNETES_PORT": "tcp://127.0.0.1:443",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "4",
        "RANK": "1",
    },
    "LSF": {
        "LSB_JOBID": "7",
        "LSB_DJOB_RANKFILE": "nowhere",
        "JSM_NAMESPACE_LOCAL_RANK": "1",
        "JSM_NAMESPACE_RANK": "1",
        "JSM_NAMESPACE_SIZE": "4",
    },
    "MPI": {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1", "PMI_SIZE": "4", "PMI_RANK": "1"},
}
