"""What studies of image supernets ask for: the loss of training with its gradient, and standalone training."""
