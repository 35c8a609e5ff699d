"""What compressed gradients cost in learning: trains small models with every codec.

    python -m gradwire.compare --help
    make compare

Ranks are threads of one process; their gradients go through the real collective
(``Communicator::all_reduce``: every rank's half and the owner's half are lossy). Runs of one seed
start from the same weights and see the same data in the same order, whatever the codec, so that
differences of the held-out loss can be taken in pairs. docs/comparison.md has the method.
"""
