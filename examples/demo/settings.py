"""What launcher and ranks agree on. Knows no torch, which takes seconds to import."""

from gradwire.compare.settings import DEBIAN_FOLDER as DEBIAN_FOLDER

CODECS = (
    "none", "bf16", "int8", "int4", "lossless", "near_lossless", "fine", "unbiased", "coarse",
)  # fmt: skip

SEED = 20
STEPS = 240
SHORT_STEPS = 12
BATCH = 128  # images per rank and step
PEAK_RATE = 0.002
# DDP's 25 MB would be one bucket for the whole model, with nothing to overlap.
BUCKET_MB = 4
