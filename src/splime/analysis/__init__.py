"""What runs amount to, side by side and by themselves: computed here, shown elsewhere."""
