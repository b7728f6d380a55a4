"""The method's steps as pure functions on arrays, and their one composition."""
