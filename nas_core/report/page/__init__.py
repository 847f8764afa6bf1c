"""One HTML file that a browser shows without a network: text, tables, and figures that answer to mouse and keys."""
