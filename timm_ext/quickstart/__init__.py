"""What ``nas-ext quickstart images`` writes: a folder of drawn images, and a script from supernet to a small model."""

from timm_ext.quickstart.images import IMAGES, ImagesQuickstart

__all__ = ["IMAGES", "ImagesQuickstart"]
