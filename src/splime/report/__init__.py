"""Tables and pictures of what is in a graph."""
