"""Where and how things are computed: devices, threads, the processes of a distributed run, very many numbers."""
