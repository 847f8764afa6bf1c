"""Models trained by timm, as supernets and as teachers."""
