"""rlhealth inside other programs: the Monitor of a training loop, the callback of trainers, the assertion of test suites. Imports watch and below."""
