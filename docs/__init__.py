"""The documentation, and the code that draws its pictures and runs its examples."""
