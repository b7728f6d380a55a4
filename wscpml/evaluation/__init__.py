"""What is measured, tested and drawn."""
