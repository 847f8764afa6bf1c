"""Models that timm has trained, as supernets and as teachers."""
