"""Real BLEU of HAT's networks beside what supernets say of them, and ways to estimate one from the other."""
