"""Example plug-ins that another package could provide, one per file."""
