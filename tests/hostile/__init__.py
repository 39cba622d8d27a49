"""What people, files and machines do that they should not, by kind of attack."""
