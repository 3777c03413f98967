"""Problems for benchmarks alone, and their suites: a study of your own imports none of them."""
