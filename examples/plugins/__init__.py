"""Things that another distribution adds, each in one file; its tests plug them in by their entry points."""
