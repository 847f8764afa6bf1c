"""Studies of trained supernets: their routers, and the trust in their metrics."""
