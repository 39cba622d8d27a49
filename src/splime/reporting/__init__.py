"""Tables, pictures and the page of graphs and runs."""
