"""What MLflow runs to load the model ("models from code")."""

from wscpml import tracking

tracking.serve()
