"""Small products gain nothing from threads, and several test runs may share few cores."""

import torch

torch.set_num_threads(1)
